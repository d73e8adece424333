// The rates and the evidence over time. All charts of a monitor share one horizontal axis, zoom and cursor.

import { el, say } from "./dom.js";
import { byOrder, clock, meaning, percent, rate, short, whole } from "./words.js";

const HEIGHT = 180;
const SHOWN = 4; // rates before the button for all
const FLOOR = 1e-4; // of an alarm: less is drawn as this
const DECADES = [1e-3, 1e-2, 1e-1, 1];
const POINTS = 2400; // kept in memory; then the older half is thinned
const PAUSE = 200; // ms between two drawings of what came in

const { css, drawMarks, motion, onKey, quantile, rateText } = fourratesChart; // report/chart.js
const known = (x) => x !== null && x !== undefined;

// The points of a monitor, column by column, in the order of its events.
export class Series {
  constructor(body) {
    this.time = body.time.map((t, i) => Math.max(t, body.time[i - 1] ?? t));
    this.event = body.event;
    this.evidence = body.evidence;
    this.rates = body.rates;
    for (let i = 1; i < this.time.length; i++) this.time[i] = Math.max(this.time[i], this.time[i - 1]);
  }

  get length() { return this.event.length; }

  // False for a point that is already there.
  add(point) {
    const last = this.length - 1;
    if (last >= 0 && point.event <= this.event[last]) return false;
    this.event.push(point.event);
    this.time.push(last >= 0 ? Math.max(point.time, this.time[last]) : point.time);
    this.evidence.push(point.evidence);
    for (const [name, columns] of Object.entries(this.rates)) {
      for (const key of Object.keys(columns)) columns[key].push(point.rates?.[name]?.[key] ?? null);
    }
    if (this.length > POINTS) this.thin();
    return true;
  }

  // Every second point of the older half leaves; gaps, where a new concept begins, stay.
  thin() {
    const half = this.length >> 1;
    const kept = (i) => i >= half || i % 2 === 0;
    const every = (list) => list.filter((_, i) => kept(i));
    this.time = every(this.time);
    this.event = every(this.event);
    this.evidence = every(this.evidence);
    for (const columns of Object.values(this.rates)) for (const key of Object.keys(columns)) columns[key] = every(columns[key]);
  }

  // The time of an event, on straight lines between the points.
  timeOf(event) {
    const { event: e, time: t } = this;
    let low = 0, high = e.length - 1;
    if (high < 0) return null;
    if (event <= e[0]) return t[0];
    if (event >= e[high]) return t[high];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (e[middle] <= event) low = middle; else high = middle;
    }
    return t[low] + ((t[high] - t[low]) * (event - e[low])) / (e[high] - e[low] || 1);
  }
}

export class Charts {
  constructor() {
    this.series = null;
    this.missed = null; // points that come while the series is asked for, which it may not have
    this.marks = []; // findings of the whole monitor
    this.charts = [];
    this.axis = "time";
    this.sight = null; // [first, last] when zoomed
    this.width = null; // seconds or events back from now when following
    this.everything = false;
    this.rates = el("div.charts");
    this.proof = el("div");
    this.more = el("p");
    this.all = el("button", { type: "button", onclick: () => this.showAll() }, "Show all");
    this.chooser = el(
      "select",
      { onchange: () => this.by(this.chooser.value) },
      el("option", { value: "time" }, "time"),
      el("option", { value: "event" }, "event number"),
    );
    const key = (kind, text) => el("span", null, el(`i.k-${kind}`), text);
    const recovery = el("span", null, el("i.k-drift.recovery"), "recovery found");
    this.node = el(
      "div",
      null,
      el(
        "div.tools",
        null,
        el("label", null, "Along ", this.chooser),
        this.all,
        el("span.soft.hint", null, "Drag to zoom, double-click for all. Keys: ← → read, + and - zoom, shift with ← → moves, 0 all."),
      ),
      el(
        "div.key",
        null,
        key("curve", "the rate, with its 90 % interval"),
        key("base", "the reference, or the baseline"),
        key("drift", "drift found"),
        recovery,
        key("started", "when it started, 90 % certain"),
      ),
      this.rates,
      this.more,
      this.proof,
    );
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.node);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.charts.forEach(({ plot }) => plot.redraw(false, true));
    this.scheme.addEventListener("change", this.redraw);
  }

  close() {
    clearTimeout(this.pending);
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.redraw);
    this.clear();
  }

  clear() {
    for (const { plot } of this.charts) plot.destroy();
    this.charts = [];
  }

  // What is drawn ---------------------------------------------------------------------------------------------

  // The series is asked for: from now on points are kept until it is here.
  expect() { this.missed = []; }

  load(series) {
    for (const point of this.missed ?? []) series.add(point);
    this.missed = null;
    const known = this.series ? Object.keys(this.series.rates).join() : null;
    this.series = series;
    if (known === Object.keys(series.rates).join() && this.charts.length) this.draw();
    else this.build();
  }

  add(point) {
    this.missed?.push(point);
    if (!this.series?.add(point) || this.pending) return;
    this.pending = setTimeout(() => {
      this.pending = null;
      this.draw();
    }, PAUSE);
  }

  mark(findings) {
    this.marks = findings.filter((one) => ["drift", "recovery"].includes(one.kind) && !one.segment);
    if (this.series) this.draw();
  }

  // The rates as the monitor states them now, for the heads of the charts.
  state(rates, reference) {
    const fresh = JSON.stringify(reference) !== JSON.stringify(this.reference);
    this.reference = reference;
    for (const chart of this.charts) chart.now?.(rates?.[chart.name]);
    this.stated = rates;
    if (fresh && this.series) this.draw();
  }

  // What the rates are compared with, in a word.
  get base() { return this.reference ? "reference" : "baseline"; }

  xs() { return this.axis === "time" ? this.series.time : this.series.event; }

  // Where a finding stands on the axis: found, started, and between which two it started.
  place(finding) {
    const at = (event) => (this.axis === "event" ? event : this.series.timeOf(event));
    const [first, last] = finding.started_between ?? [finding.started ?? finding.since ?? finding.at, finding.at];
    const started = known(finding.started) ? at(finding.started) : null;
    return { found: at(finding.at), started, first: at(first), last: at(last), recovery: finding.kind === "recovery" };
  }

  by(axis) {
    this.axis = axis;
    this.chooser.value = axis;
    this.sight = null;
    this.build();
  }

  build() {
    this.clear();
    const names = Object.keys(this.series.rates).sort(byOrder);
    const few = this.everything ? names : names.slice(0, SHOWN);
    this.rates.replaceChildren();
    this.proof.replaceChildren();
    this.more.replaceChildren();
    for (const name of few) this.rateChart(name);
    if (few.length < names.length) {
      const show = () => { this.everything = true; this.build(); this.rates.querySelectorAll(".chart")[SHOWN]?.focus(); };
      this.more.append(el("button", { type: "button", onclick: show }, `Show all ${names.length} rates`));
    }
    this.evidenceChart();
    if (this.stated) this.state(this.stated, this.reference);
    this.draw();
  }

  draw() {
    for (const { plot, columns } of this.charts) plot.setData(columns(), false);
    this.scale();
  }

  extentOf() {
    const xs = this.xs();
    return xs.length ? [xs[0], Math.max(xs.at(-1), xs[0] + 1)] : [0, 1];
  }

  scale() {
    const [min, max] = this.sight ?? this.extentOf();
    for (const { plot } of this.charts) plot.setScale("x", { min, max });
    this.all.disabled = this.sight === null;
  }

  zoom(min, max) {
    const [first, last] = this.extentOf();
    const width = Math.min(Math.max(max - min, this.axis === "time" ? 1 : 10), last - first);
    min = Math.min(Math.max((min + max) / 2 - width / 2, first), last - width);
    this.sight = width >= last - first ? null : [min, min + width];
    this.scale();
  }

  showAll() {
    this.sight = null;
    this.scale();
  }

  show(finding) {
    if (!this.series?.length) return;
    const { found, first } = this.place(finding);
    const [begin, end] = this.extentOf();
    const room = Math.max(2 * Math.abs(found - first), (end - begin) / 50);
    this.zoom(Math.min(first, found) - room, found + room);
    this.node.scrollIntoView({ behavior: motion() });
    this.rates.querySelector(".chart")?.focus({ preventScroll: true });
  }

  fit() {
    for (const { plot, box } of this.charts) {
      const width = Math.max(box.clientWidth - 20, 200);
      if (Math.abs(width - plot.width) > 1) plot.setSize({ width, height: plot.height });
    }
  }

  // Each chart ------------------------------------------------------------------------------------------------

  rateChart(name) {
    const now = el("b.now.num");
    const base = el("span.soft.num");
    const columns = () => {
      const { value, lower, upper, baseline } = this.series.rates[name];
      const shipped = this.reference?.[name];
      return [this.xs(), value, lower, upper, known(shipped) ? value.map(() => shipped) : baseline ?? value.map(() => null)];
    };
    const edge = { points: { show: false }, stroke: () => css("--edge"), width: 0.5 };
    const told = (u, i) => {
      const [, value, lower, upper, baseline] = u.data;
      if (!known(value[i])) return "";
      const interval = known(lower[i]) ? `, ${rate(lower[i])} to ${rate(upper[i])}` : "";
      return `${short(name)} ${rate(value[i])}${interval}${known(baseline[i]) ? `; ${this.base} ${rate(baseline[i])}` : ""}`;
    };
    const options = {
      scales: { y: { range: (u) => this.extent(u) } },
      series: [
        {},
        { label: short(name), stroke: () => css("--curve"), width: 1.6, points: { show: false } },
        { ...edge },
        { ...edge },
        { points: { show: false }, stroke: () => css("--soft"), width: 1, dash: [5, 4] },
      ],
      bands: [{ series: [3, 2], fill: () => css("--band") }],
    };
    const head = [el("h3", null, short(name), " ", el("span.soft.meaning", null, meaning(name))), el("p.stand", null, now, " ", base)];
    const chart = this.chart(this.rates, `${short(name)}${meaning(name) ? `, ${meaning(name)}` : ""}`, head, options, columns, told, HEIGHT);
    chart.name = name;
    chart.now = (state) => {
      const share = state?.now;
      say(now, rate(share?.value));
      const interval = share?.n ? `${rate(share.lower)} to ${rate(share.upper)} of ${whole(share.n)}` : "";
      const level = this.reference?.[name] ?? state?.normal?.value ?? state?.baseline?.value;
      say(base, `${interval}${known(level) ? `; ${this.base} ${rate(level)}` : ""}`);
    };
  }

  evidenceChart() {
    const told = (u, i) => (known(u.data[1][i]) ? `${percent(u.data[1][i] > FLOOR ? u.data[1][i] : this.series.evidence[i])} of an alarm` : "");
    const alarm = (u) => {
      const { ctx, bbox } = u;
      const y = u.valToPos(1, "y", true);
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = css("--drift");
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.font = `600 ${11 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "left";
      ctx.fillText("alarm", bbox.left + 6 * devicePixelRatio, y + 13 * devicePixelRatio);
      ctx.restore();
    };
    const options = {
      scales: { y: { distr: 3, log: 10, range: [FLOOR, 2] } }, // evidence multiplies: on this axis it climbs steadily
      series: [{}, { label: "evidence", stroke: () => css("--curve"), width: 1.4, fill: () => css("--wide"), points: { show: false } }],
      percent: true,
      alarm,
    };
    const columns = () => {
      const shown = this.series.evidence.map((share) => (known(share) ? Math.max(share, FLOOR) : null));
      for (const one of this.marks) { // it reached the alarm there, also if that point was thinned out since
        const place = one.kind === "drift" ? this.series.event.findIndex((event) => event > one.at) : -1;
        if (place >= 0) shown[place] = 1;
      }
      return [this.xs(), shown];
    };
    const head = [el("h3", null, "evidence ", el("span.soft.meaning", null, "how far it has come towards an alarm"))];
    this.chart(this.proof, "Evidence for a drift", head, options, columns, told, 150);
  }

  chart(area, title, head, own, columns, told, height) {
    const readout = el("div.readout", { "aria-live": "polite" });
    const label = `${title}, over time. Arrow keys read it, plus and minus zoom, 0 shows all.`;
    const box = el("section.chart", { tabindex: 0, role: "group", "aria-label": label }, el("header", null, ...head), readout);
    area.append(box);
    const numbers = (u, splits) => splits.map((x) => (Number.isInteger(x) ? whole(x) : ""));
    const shares = (u, splits) => splits.map((x) => `${Number((100 * x).toPrecision(1))} %`);
    const { setSelect, ...shared } = fourratesChart.options({
      key: "monitor",
      zoom: (min, max) => this.zoom(min, max),
      values: {
        x: { space: 70, values: this.axis === "time" ? stamps : numbers },
        y: own.percent ? { size: 58, splits: () => DECADES, filter: (u, splits) => splits, values: shares } : { size: 58, space: 32, values: rateText },
      },
    });
    const options = {
      ...shared,
      width: Math.max(box.clientWidth - 20, 200),
      height,
      series: own.series,
      bands: own.bands,
      scales: { x: { time: this.axis === "time", range: (u, min, max) => [min, max] }, ...own.scales },
      hooks: {
        drawAxes: [(u) => drawMarks(u, this.marks.map((one) => this.place(one)))],
        draw: own.alarm ? [own.alarm] : [],
        setCursor: [(u) => {
          const i = u.cursor.idx;
          const text = known(i) && u.cursor.left >= 0 ? told(u, i) : "";
          say(readout, text ? `event ${whole(this.series.event[i])}, ${clock(this.series.time[i], { exact: true })}: ${text}` : "");
        }],
        setSelect: [setSelect],
      },
    };
    const plot = new uPlot(options, columns(), box);
    plot.over.addEventListener("dblclick", () => this.showAll());
    box.addEventListener("keydown", (event) => onKey(event, plot, { zoom: (min, max) => this.zoom(min, max), all: () => this.showAll() }));
    const chart = { plot, box, columns, name: null };
    this.charts.push(chart);
    return chart;
  }

  // From the lowest to the highest value in sight, with the interval where it has settled: right after a start it
  // reaches from 0 to 1 and would make a flat line of everything else.
  extent(u) {
    const [xs, value, lower, upper, baseline] = u.data;
    const [min, max] = this.sight ?? this.extentOf();
    const seen = [];
    for (let i = 0; i < xs.length; i++) if (xs[i] >= min && xs[i] <= max && known(value[i])) seen.push(i);
    if (!seen.length) return [0, 1];
    const lows = seen.map((i) => lower[i] ?? value[i]);
    const highs = seen.map((i) => upper[i] ?? value[i]);
    let low = quantile(lows, 0.1);
    let high = quantile(highs, 0.9);
    const width = (i) => (known(lower[i]) ? upper[i] - lower[i] : 0);
    const usual = quantile(seen.map(width), 0.5);
    for (const i of seen) {
      if (width(i) <= 1.5 * usual) { low = Math.min(low, value[i]); high = Math.max(high, value[i]); }
      if (known(baseline[i])) { low = Math.min(low, baseline[i]); high = Math.max(high, baseline[i]); }
    }
    const room = Math.max(0.06 * (high - low), 0.01);
    return [Math.max(low - room, -0.02), Math.min(high + room, 1.02)];
  }
}

// Times on the axis, as fine as the steps are; the day where it changes.
function stamps(u, splits, axis, space, step) {
  let day = null;
  return splits.map((x) => {
    const full = clock(x, { exact: true, day: true });
    const [date, time] = full.split(" ");
    const fresh = date !== day && (day !== null || step >= 86400);
    day = date;
    if (step >= 86400) return date.slice(5);
    return fresh ? date.slice(5) : step < 60 ? time : time.slice(0, 5);
  });
}
