// Drifts and recoveries, latest first, a line each, with intervals, times and matrices behind it.

import * as api from "./api.js";
import { acknowledged } from "./actions.js";
import { el, follow, mark, printable, section } from "./dom.js";
import { matrix } from "./matrix.js";
import { ENDED, KINDS, clock, known, moves, rate, seconds, segment, several, short, span, whole } from "./words.js";

const PAGE = 12;
const MOST = 1_000; // in one answer
const SHAPES = { drift: "drifted", confirmation: "drifted", shift: "warning", prediction_shift: "warning" };

export class Findings {
  // `of` names the monitor and its segment; `labels()` gives its classes, `show(finding)` zooms the charts.
  constructor(of, { labels, show, actions, notice }) {
    Object.assign(this, { of, labels, show, actions, notice });
    this.all = []; // latest first
    this.shown = PAGE;
    this.open = []; // the open drifts of the monitor
    this.unfolded = new Set();
    this.node = el("section");
    this.render();
  }

  async refresh() {
    const { shown } = this;
    const fresh = await api.findings(this.of.monitor, shown, { segment: this.of.values });
    if (shown !== this.shown) return; // older ones were requested meanwhile
    this.complete = fresh.length < shown || shown === MOST;
    this.first ??= fresh[0]?.id;
    const ids = new Set(fresh.map(({ id }) => id));
    this.all = [...fresh, ...this.all.filter(({ id }) => !ids.has(id))];
    this.render();
  }

  async older() {
    const before = this.all.length;
    this.shown = Math.min(this.shown + PAGE, MOST);
    try {
      await this.refresh();
      this.node.querySelectorAll(".drift summary")[before]?.focus();
    } catch (error) {
      this.notice(`Earlier ones could not be loaded: ${error.message}`, true);
    }
  }

  render() {
    const old = this.all.findIndex(({ id }) => id === this.first); // those before it came while the page was open
    const cards = this.all.map((one, place) => this.card(one, place < old, this.open.some(({ id }) => id === one.id)));
    follow(this.node, section("Drifts and recoveries", cards.length ? el("ol.drifts", null, cards) : el("p.soft", null, "None yet."),
      el("p", null, this.complete === false && el("button", { type: "button", onclick: () => this.older() }, "Show earlier ones"))));
  }

  card(one, fresh, open) {
    const found = seconds(one.time);
    const unfold = ({ target }) => {
      if (!target.open || this.unfolded.has(one.id)) return;
      this.unfolded.add(one.id);
      this.render();
    };
    return el(`li.drift.${one.kind}${fresh ? ".fresh" : ""}`, { "data-id": one.id }, el("details", { ontoggle: unfold },
      el("summary", null, mark(SHAPES[one.kind] ?? "stable"), el("b", null, KINDS[one.kind] ?? printable(one.kind)), " ",
        el("span.soft.num", null, found === null ? `event ${whole(one.at)}` : clock(found)), " ",
        one.segment && el("span.name", null, segment(one.segment), " "), el("span.what", null, moves(one)), " ", open && el("span.tag", null, "Open")),
      this.unfolded.has(one.id) && this.body(one)));
  }

  body(one) {
    const button = (text, onclick) => el("button", { type: "button", onclick }, text);
    return el("div.body", null,
      one.changes?.length ? el("ul.moves", null, one.changes.map((change) => this.move(change, one))) : el("p", null, moves(one)),
      el("div.facts", null, this.facts(one), this.matrices(one)), one.acknowledged && el("p.soft", null, acknowledged(one)),
      el("div.buttons", null, button("Show in the charts", () => this.show(one)), one.kind === "drift" && [
        button("Download training IDs", () => this.actions.ids(one)), button("Acknowledge", () => this.actions.see(one))]));
  }

  move(change, finding) {
    const { before, after } = change;
    const ended = ENDED.includes(finding.kind);
    const verb = el("strong", null, el("span.name", null, short(change.rate)), ended ? "" : change.direction === "down" ? " fell" : " rose");
    if (!before || !after) return el("li", null, verb);
    const share = (one) => [el("b.num", null, rate(one.value)), el("span.soft.num", null, known(one.lower) ? ` (${rate(one.lower)} to ${rate(one.upper)} of ${whole(one.n)})` : "")];
    return el("li", null, verb, ended ? " was " : " from ", share(before), ended ? ", is " : " to ", share(after));
  }

  facts(one) {
    const [began, found] = [seconds(one.started_time), seconds(one.time)];
    const row = (name, text) => [el("dt", null, name), el("dd.num", null, text)];
    const rows = [];
    if (began !== null) rows.push(row("Started", `about ${clock(began, { exact: true })}`));
    if (found !== null) rows.push(row("Found", `${clock(found, { exact: true })}${began === null ? "" : `, ${span(found - began)} later`}`));
    if (known(one.started_first)) rows.push(row("Started between (90 %)", `${one.kind === "prediction_shift" ? "predictions" : "events"} ${whole(one.started_first)} and ${whole(one.started_last)}`));
    if (one.kind === "drift" && known(one.started)) rows.push(row("Retrain on", several(one.at - one.started + 1, "event")));
    return el("dl", null, rows.flat());
  }

  matrices(one) {
    const labels = this.labels();
    if (!labels || !one.confusion_before || !one.confusion_after) return null;
    return el("div.matrices", null, matrix("Before", one.confusion_before, labels), matrix("Since it started", one.confusion_after, labels));
  }
}
