// One monitor, or one of its segments, with verdict, rates over time, actions, segments, findings, classes and settings.

import { Actions, acknowledged } from "./actions.js";
import * as api from "./api.js";
import { Charts } from "./charts.js";
import { el, follow, mark, shortened } from "./dom.js";
import { arrivals, classes, settings } from "./facts.js";
import { Findings } from "./findings.js";
import { Segments } from "./segments.js";
import { address, ago, clock, culprit, delay, isRecall, isYoung, known, sameSegment, seconds, segment, several, story, verdict, whole } from "./words.js";

const POINTS = 600;
const OVERLAID = 3; // segments over the large chart

export class MonitorView {
  // `values` are those of a segment, in the order of its columns; null for the monitor itself.
  constructor(name, values, notice) {
    this.monitor = name;
    this.values = values;
    this.segment = null; // as {column: value}, when it is known
    this.one = null;
    this.state = "Loading…"; // until the monitor is known
    this.hint = null;
    this.rejected = null; // rows, when somebody wants to see them
    this.notice = notice;
    this.actions = new Actions(this, notice);
    this.charts = new Charts(() => this.redraw());
    this.findings = new Findings(this, { labels: () => this.one?.labels, show: (finding) => this.charts.zoomTo(finding), actions: this.actions, notice });
    this.segments = values ? null : new Segments(name);
    this.header = el("header");
    this.about = el("div");
    this.skeleton = el("main.skeleton", { "aria-hidden": true }, el("i"), el("i"), el("i"));
    this.main = el("main", { hidden: true }, [this.charts, this.segments, this.findings].map((part) => part?.node), this.about);
    this.node = el("div", null, this.header, this.skeleton, this.main);
    this.render();
  }

  close() {
    this.closed = true;
    this.charts.close();
  }

  // News ---------------------------------------------------------------------------------------------------------

  async look() {
    try {
      const { range } = this.charts;
      const [one, row, series, ofThis] = await Promise.all([api.monitor(this.monitor), this.row(), this.series(), this.marked(), this.findings.refresh(), this.segments?.refresh()]);
      if (this.closed) return;
      this.one = one;
      this.ofThis = ofThis;
      if (this.values) this.narrow(row);
      this.main.hidden = false;
      this.skeleton.hidden = true;
      this.findings.open = one.open;
      this.findings.render();
      this.render();
      const own = [...this.ofThis, ...this.findings.all].filter(({ kind, segment: of }) => ["drift", "recovery"].includes(kind) && sameSegment(of, this.segment));
      const marks = [...new Map(own.map((found) => [found.id, found])).values()];
      this.charts.show({ one, marks, ...(range === this.charts.range && { series }) });
      if (this.asks) this.header.querySelector("[data-id=Acknowledge]")?.click();
      this.asks = false;
      await this.overlay();
    } catch (error) {
      if (this.closed || error.status !== 404) throw error;
      this.one = null;
      this.state = error.code === "no_segment" ? "No segment with these values" : "No monitor with this name";
      this.hint = ["See ", el("a", { href: this.values ? address(this.monitor) : "#/" }, this.values ? "the monitor" : "all monitors"), "."];
      this.main.hidden = this.skeleton.hidden = true;
      this.render();
    }
  }

  unreachable() {
    if (!this.hint) this.state = "The server does not answer.";
    this.render();
  }

  series() { return this.values ? api.segmentSeries(this.monitor, this.values) : api.series(this.monitor, POINTS, this.charts.range); }

  // The findings that the charts mark, those of this stream alone.
  marked() { return api.findings(this.monitor, 100, this.values ? { segment: this.values } : { overall: true }); }

  async row() { return this.values && (await api.segments(this.monitor, { segment: this.values })).segments[0]; }

  async redraw() {
    const { range } = this.charts;
    const series = await this.series();
    if (!this.closed && range === this.charts.range) this.charts.show({ series });
  }

  // The pinned segments over the large chart; over that of a segment, the monitor as a whole.
  async overlay() {
    const pinned = this.values ? [] : this.segments.pinned.slice(0, OVERLAID);
    const found = await Promise.all(this.values ? [api.series(this.monitor, 240, null)] : pinned.map((parts) => api.segmentSeries(this.monitor, Object.values(parts))));
    if (this.closed) return;
    const of = (i) => (this.values ? { label: "overall", href: address(this.monitor), tone: "--soft" } : { label: segment(pinned[i]), href: address(this.monitor, pinned[i]), tone: i === 0 ? "--drift" : "--other" });
    this.charts.show({ overlays: found.map((body, i) => ({ ...of(i), series: body })) });
  }

  // A monitor's summary for one of its segments.
  narrow(row) {
    this.segment = row.segment;
    const open = this.one.open.filter((drift) => sameSegment(drift.segment, row.segment));
    const rates = Object.entries(row.rates).filter(([name]) => isRecall(name));
    const far = ([, { now, normal }]) => (now?.n && normal?.n ? (now.value - normal.value) / (now.upper - now.lower || 1) : 0);
    const moved = open.length ? rates.filter(([name]) => name in open[0].now) : rates.filter(([, state]) => state.now?.n >= state.enough);
    const [name, state] = (moved.length ? moved : rates).reduce((a, b) => (far(a) <= far(b) ? a : b));
    const last = this.findings.all[0] ?? this.ofThis[0] ?? null;
    Object.assign(this.one, { ...row, open, worst: { segment: row.segment, rate: name, ...state }, drifted_segments: 0, last_finding: last });
  }

  // Display --------------------------------------------------------------------------------------------------

  render() {
    const { one } = this;
    follow(this.header, one ? this.summary({ segment: null, ...one }) : this.head("waiting", this.state, "", this.hint));
    if (one && !this.values) follow(this.about, el("div", null, classes(one), arrivals(one, this.rejected, () => this.list()), settings(one)));
  }

  head(status, state, rest, lead, facts = "", actions = null) {
    const name = shortened(this.monitor);
    return el(`header.${status}`, { "aria-busy": String(!this.one && !this.hint) },
      el("p.kicker", null, el("a", { href: "#/" }, "All monitors"), " / ", this.values ? el("a", { href: address(this.monitor) }, name) : el("span.name", null, name),
        el("span", null, this.segment && ` / ${segment(this.segment)}`), el("span.num", null, facts)),
      el("h1", null, el("em", null, state), el("span", null, rest && `: ${rest}`)), el("p.lead", null, lead), actions);
  }

  summary(one) {
    const [state, rest] = verdict(one);
    document.title = `${state}: ${shortened(this.monitor, 40)}`;
    const lead = story(one).join(" · ");
    const last = seconds(one.last_event);
    const deployed = one.deployments?.length > 1 && one.deployments.at(-1);
    const facts = [
      several(one.events, "event"),
      !this.values && `${whole(one.events_last_hour)} in the last hour`,
      last !== null && `last event ${ago(last)}`,
      one.waiting && !this.values && `${several(one.waiting, "prediction")} awaiting labels`,
      known(one.label_delay) && `labels take ${delay(one.label_delay)}`,
      one.label_warning,
      deployed && `version ${shortened(deployed.version, 40)} deployed ${clock(seconds(deployed.time))}`,
    ];
    const open = culprit(one);
    const drift = open && [...this.findings.all, one.drift].find((found) => found?.id === open.id);
    return this.head(one.status, [mark(isYoung(one) ? "waiting" : one.status), state], rest, lead && lead[0].toUpperCase() + lead.slice(1),
      ` · ${facts.filter(Boolean).join(" · ")}`, this.actions.buttons(one, open, drift?.acknowledged ? acknowledged(drift) : ""));
  }

  // The rejected rows.
  async list() {
    try {
      this.rejected = (await api.rejected(this.monitor)).rejected;
      this.render();
    } catch (error) {
      this.notice(`The rows could not be loaded: ${error.message}`, true);
    }
  }
}
