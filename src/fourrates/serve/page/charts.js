// The rates over time, one chart large, the others small beside it, the volume below. One time axis, zoom and cursor.

import { el, follow, shortened } from "./dom.js";
import { byOrder, clock, delay, isRecall, known, meaning, percent, rate, seconds, short, span, whole } from "./words.js";

const [LARGE, SMALL, STRIP] = [316, 84, 80]; // px high
const RIGHT = 46; // px beside the large chart and the strip, whose second axis is there
const BESIDE = 3; // small charts of rates before the button for all
const FLOOR = 1e-4; // of an alarm; less is drawn as this
const BARS = 90; // of the volume
const RANGES = [["15 min", 900], ["1 h", 3600], ["6 h", 21_600], ["1 day", 86_400], ["1 week", 604_800], ["All", null]];
const SHORT = 1; // s; a life too short for a time axis
const STEPS = [1, 2, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((x) => 60 * x), ...[1, 2, 7, 14, 28, 84, 364].map((x) => 86_400 * x)];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

const { css } = drawing; // shared with the report
const quantile = (list, share) => [...list].sort((a, b) => a - b)[Math.round(share * (list.length - 1))];

// The value of one column at the values of another, on straight lines between the points.
function valueAt(xs, ys, x) {
  const high = xs.findIndex((one) => one > x);
  if (x <= xs[0]) return ys[0];
  if (high < 0) return ys.at(-1) ?? null;
  const share = (x - xs[high - 1]) / (xs[high] - xs[high - 1]);
  return ys[high - 1] + (ys[high] - ys[high - 1]) * share;
}

export class Charts extends drawing.Charts {
  // `ask()` fetches the series of another range.
  constructor(ask) {
    super();
    this.ask = ask;
    this.series = null;
    this.one = null; // the monitor or segment as it is now, for the heads
    this.marks = []; // findings
    this.overlays = []; // {label, href, tone, series}: segments over the large chart
    this.axis = "time";
    this.range = null; // seconds back from the last point; null for all
    this.life = 0; // seconds, of the longest series so far
    this.chosen = null; // the rate that a person wants large
    this.everything = false;
    this.large = el("div.large");
    this.small = el("div.small");
    this.strip = el("div.strip");
    this.more = el("div.small.more");
    this.key = el("div.key");
    this.all = el("button", { type: "button", onclick: () => this.showAll() }, "Reset zoom");
    this.chooser = el("select", { onchange: () => this.by(this.chooser.value) }, el("option", { value: "time" }, "time"), el("option", { value: "event" }, "event number"));
    this.axes = el("label", null, "X-axis ", this.chooser);
    this.ranges = el("div.ranges", { role: "group", "aria-label": "Time range" }, RANGES.map(([text, length]) =>
      el("button", { type: "button", "data-range": String(length), onclick: () => this.choose(length) }, text)));
    this.node = el("div.plots", null, el("div.tools", null, this.ranges, this.axes, this.all, this.key), el("div.grid", null, el("div", null, this.large, this.strip), this.small), this.more);
    this.observer.observe(this.node);
  }

  // What is new of `series`, `one`, `marks` and `overlays`.
  show(news) {
    Object.assign(this, news);
    if (!this.series) return;
    const { time, event } = this.series;
    const life = time.length ? time.at(-1) - time[0] : 0;
    this.life = Math.max(this.life, life);
    this.ranges.hidden = this.life < RANGES[0][1];
    for (const button of this.ranges.children) {
      button.hidden = Number(button.dataset.range) > this.life;
      button.ariaPressed = String(button.dataset.range === String(this.range));
    }
    this.axes.hidden = !event;
    if (life < SHORT && event && !this.built) this.axis = this.chooser.value = "event"; // a batch, all at one moment
    this.draw();
  }

  choose(length) {
    this.range = length;
    this.sight = null;
    this.ask();
  }

  by(axis) {
    this.axis = this.chooser.value = axis;
    this.sight = null;
    this.draw();
  }

  // Show a person's choice in the large chart.
  enlarge(name) {
    this.chosen = name;
    this.draw();
    this.large.querySelector(".chart").focus();
  }

  // Drawing ----------------------------------------------------------------------------------------------------

  // The rates that there are, the one to show large first.
  names() {
    const names = Object.keys(this.series.rates).sort(byOrder);
    const first = [this.chosen, this.one?.worst?.rate].find((name) => names.includes(name));
    return [...new Set([first ?? names[0], ...names])];
  }

  // The versions that were met, if there are several.
  versions() { return this.one?.deployments?.length > 1 ? this.one.deployments : []; }

  draw() {
    const parts = JSON.stringify([this.axis, this.everything, this.names(), this.overlays.map(({ label }) => label), this.versions().length]);
    if (parts !== this.built) this.build();
    this.built = parts;
    for (const chart of this.charts) chart.now?.();
    this.scale();
  }

  build() {
    this.clear();
    for (const area of [this.large, this.small, this.strip, this.more]) area.replaceChildren();
    const [lead, ...others] = this.names();
    this.rateChart(this.large, lead, LARGE);
    for (const name of others.slice(0, BESIDE)) this.rateChart(this.small, name, SMALL);
    if (this.series.evidence) this.levelChart();
    if (this.series.event) this.volumeChart();
    const rest = others.slice(BESIDE);
    if (this.everything) for (const name of rest) this.rateChart(this.more, name, SMALL);
    else if (rest.length) {
      const show = () => { this.everything = true; this.draw(); this.more.querySelector(".chart").focus(); };
      this.more.append(el("button", { type: "button", onclick: show }, `Show all ${others.length + 1} rates`));
    }
    const key = (kind, text) => el("span", null, el(`i.k-${kind}`), text);
    follow(this.key, el("div.key", null, key("curve", `${short(lead)}, 90 % interval`), key("base", "normal"), key("drift", "drift found"), key("recovery", "recovery"), key("started", "started between (90 %)"), this.versions().length > 0 && key("deployed", "deployed")));
  }

  timed() { return this.axis === "time"; }

  xs() { return this.timed() ? this.series.time : this.series.event; }

  ends() {
    const xs = this.xs();
    const first = !this.timed() && xs.length === 1 ? 0 : xs[0];
    return xs.length ? [first, Math.max(xs.at(-1), first + 1)] : [0, 1];
  }

  scale() {
    super.scale();
    this.all.hidden = this.sight === null;
  }

  zoomTo(finding) {
    if (!this.series?.time.length) return;
    const { found, first } = this.place(finding);
    const [begin, end] = this.ends();
    const room = Math.max(Math.abs(found - first) / 2, (end - begin) / 50);
    this.zoom(Math.min(first, found) - room, found + room);
    this.node.scrollIntoView({ behavior: drawing.motion() });
    this.large.querySelector(".chart")?.focus({ preventScroll: true });
  }

  // A finding on the axis, with its detection, start and the interval of its start. Events of a segment or a later version,
  // and predictions, have their own numbers, so they are placed by time.
  place(finding) {
    const { series } = this;
    const recovery = finding.kind === "recovery";
    const own = !series.event || finding.segment || finding.kind === "prediction_shift" || (finding.version && this.versions().length);
    const [found, started] = [seconds(finding.time), seconds(finding.started_time)];
    const [first, last] = [finding.started_first ?? finding.started ?? finding.at, finding.started_last ?? finding.at];
    if (this.timed()) {
      const at = (event) => (own ? started ?? found : valueAt(series.event, series.time, event));
      return { found, started, first: at(first), last: at(last), recovery };
    }
    if (!own) return { found: finding.at, started: finding.started, first, last, recovery };
    const [end, begin] = [found, started ?? found].map((time) => valueAt(series.time, series.event, time));
    return { found: end, started: begin, first: begin, last: begin, recovery };
  }

  // The later versions on the axis.
  deployed() {
    const { series } = this;
    const at = (time) => (this.timed() ? time : valueAt(series.time, series.event, time));
    return this.versions().filter((one) => one.event > 0 && one.time).map((one) => ({ x: at(seconds(one.time)), version: shortened(one.version, 20) }));
  }

  // Each chart -------------------------------------------------------------------------------------------------

  rateChart(area, name, height) {
    const large = height === LARGE;
    const over = large && this.timed() ? this.overlays.filter(({ series }) => series.rates[name]) : [];
    const columns = () => {
      const { value, lower, upper, baseline } = this.series.rates[name];
      const own = [this.xs(), value, lower, upper, baseline ?? value.map(() => this.one?.rates?.[name]?.normal?.value ?? null)];
      return over.length ? uPlot.join([own, ...over.map(({ series }) => [series.time, series.rates[name].value])]) : own;
    };
    const line = (stroke, more) => ({ stroke: () => css(stroke), points: { show: (u) => u.data[0].length < 3, size: 5 }, ...more });
    const series = [
      line("--curve", { width: large ? 2 : 1.4 }), line("--edge", { width: 0.5 }), line("--edge", { width: 0.5 }), line("--soft", { width: 1, dash: [5, 4] }),
      ...over.map((one, i) => line(one.tone, { width: 1.6, dash: DASHES[i % DASHES.length] })),
    ];
    const stand = el("span.stand");
    const title = large ? el("h3", null, short(name)) : el("h3", null, el("button.plain", { type: "button", onclick: () => this.enlarge(name), title: "Show large" }, short(name)));
    const links = over.map((one, i) => el("a", { href: one.href }, el(`i.k-line.d${i}.${one.tone.slice(2)}`), one.label));
    const head = [title, el("span.soft.meaning", null, meaning(name)), stand, links.length > 0 && el("span.overlaid", null, links)];
    const describe = (u, i) => {
      const [, value, lower, upper, baseline, ...others] = u.data.map((column) => column[i]);
      const parts = [known(value) && `${short(name)} ${rate(value)}${known(lower) ? ` (${rate(lower)} to ${rate(upper)})` : ""}`, known(baseline) && `normal ${rate(baseline)}`];
      others.forEach((x, n) => parts.push(known(x) && `${over[n].label} ${rate(x)}`));
      return parts.filter(Boolean).join(", ");
    };
    const marks = () => this.marks.filter((one) => !isRecall(name) || one.changes.some((change) => change.rate === name));
    const bands = [{ series: [3, 2], fill: () => css("--band") }];
    const scales = { y: { range: (u) => this.extent(u) } };
    const chart = this.chart(area, height, { label: `${short(name)}, ${meaning(name)}`, head, columns, describe, series, bands, scales, marks });
    chart.now = () => {
      const state = this.one?.rates?.[name];
      const parts = [large && state?.now?.n && `${rate(state.now.lower)} to ${rate(state.now.upper)} of ${whole(state.now.n)}`, state?.normal?.n && `normally ${rate(state.normal.value)}`];
      follow(stand, el("span.stand", null, el("b.num", null, rate(state?.now?.value)), " ", el("span.soft.num", null, parts.filter(Boolean).join(", "))));
    };
  }

  levelChart() {
    const describe = (u, i) => (known(u.data[1][i]) ? `alarm level ${percent(Math.min(u.data[1][i], 1))}` : "");
    const alarm = (u) => drawing.inside(u, (ctx, { left, width }) => {
      const y = u.valToPos(1, "y", true);
      drawing.stroke(ctx, "--drift", 1, 1, [5, 4], [[left, y], [left + width, y]]);
    });
    const columns = () => {
      const shown = this.series.evidence.map((share) => (known(share) ? Math.max(share, FLOOR) : null));
      for (const one of this.marks) { // it reached the alarm there, also if that point was thinned out since
        const place = one.kind === "drift" && !one.segment ? this.series.time.findIndex((time) => time >= seconds(one.time)) : -1;
        if (place >= 0) shown[place] = 1;
      }
      return [this.xs(), shown];
    };
    this.chart(this.small, SMALL, {
      label: "Alarm level",
      head: [el("h3", null, "Alarm level"), el("span.soft.meaning", null, "100 % raises the alarm")],
      columns,
      describe,
      scales: { y: { distr: 3, log: 10, range: [FLOOR, 2] } }, // evidence multiplies, so on this axis it climbs steadily
      series: [{ stroke: () => css("--curve"), width: 1.4, fill: () => css("--band"), points: { show: false } }],
      y: { splits: () => [1e-2, 1], filter: (u, splits) => splits, values: (u, splits) => splits.map((x) => `${100 * x} %`) },
      over: alarm,
    });
  }

  volumeChart() {
    const columns = () => {
      const [min, max] = this.sight ?? this.ends();
      const edges = [...Array(BARS + 1)].map((_, i) => min + ((max - min) * i) / BARS);
      const { time, event } = this.series;
      const at = this.timed() ? edges.map((x) => valueAt(time, event, x)) : edges;
      const middles = edges.slice(1).map((x, i) => (x + edges[i]) / 2);
      const xs = this.xs();
      const delays = middles.map((x) => { const i = xs.findIndex((one) => one >= x); return i < 0 ? null : this.series.label_delay[i]; });
      return [middles, middles.map((_, i) => (at[i + 1] ?? 0) - (at[i] ?? 0)), delays];
    };
    const late = this.series.label_delay.some(known);
    const unit = () => { const [min, max] = this.sight ?? this.ends(); return this.timed() ? `in ${span((max - min) / BARS)}` : ""; };
    const numbers = (write) => (u, splits) => splits.map((x) => (Number.isInteger(x) ? write(x) : ""));
    this.chart(this.strip, STRIP, {
      label: "Volume and label delay",
      head: [el("h3", null, "Events"), late && el("span.soft", null, el("i.k-line.other"), "label delay")],
      columns,
      describe: (u, i) => `${whole(u.data[1][i])} events ${unit()}${known(u.data[2][i]) ? `, labels take ${delay(u.data[2][i])}` : ""}`,
      scales: { y: { range: (u, min, max) => [0, Math.max(max, 1)] }, late: { range: (u, min, max) => [0, Math.max(1.1 * max, 1)] } },
      series: [{ stroke: () => css("--edge"), fill: () => css("--band"), width: 1, paths: uPlot.paths.bars({ size: [1, 40] }), points: { show: false } },
        { scale: "late", stroke: () => css("--other"), width: 1.6, spanGaps: true, points: { show: false } }],
      y: { space: 24, values: numbers(brief) },
      more: late ? [{ scale: "late", side: 1, size: RIGHT, space: 24, grid: { show: false }, values: numbers(span) }] : [],
    });
  }

  chart(area, height, { y, more = [], marks = () => this.marks, describe, ...own }) {
    const small = height === SMALL;
    return this.add(area, {
      ...own,
      height,
      more,
      x: { show: !small, ...(this.timed() && { incrs: STEPS }) },
      y: { space: small ? 26 : 36, ...y },
      padding: [6, small ? 8 : more.length ? 0 : RIGHT, small ? 6 : 0, 0],
      under: (u) => drawing.drawMarks(u, marks().map((one) => this.place(one)), this.deployed()),
      describe: (u, i) => {
        const text = describe(u, i);
        const where = this.timed() ? clock(u.data[0][i], { exact: true }) : `event ${whole(u.data[0][i])}`;
        return text && `${where}: ${text}`;
      },
    });
  }

  // From the lowest to the highest value in sight, with the interval as far as it is usual.
  extent(u) {
    const [xs, value, lower, upper, ...others] = u.data;
    const [min, max] = this.sight ?? this.ends();
    const seen = [], points = [];
    for (let i = 0; i < xs.length; i++) {
      if (xs[i] < min || xs[i] > max) continue;
      if (known(value[i])) seen.push(i);
      for (const column of others) if (known(column[i])) points.push(column[i]);
    }
    if (!seen.length) return [0, 1];
    points.push(...seen.map((i) => value[i]), quantile(seen.map((i) => lower[i] ?? value[i]), 0.1), quantile(seen.map((i) => upper[i] ?? value[i]), 0.9));
    return drawing.around(points);
  }
}

const brief = (x) => (x >= 1e6 ? `${x / 1e6} M` : x >= 1e4 ? `${x / 1e3} k` : whole(x));
