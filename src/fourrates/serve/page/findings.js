// Drifts and recoveries, latest first, a line each, with intervals, times and matrices behind it.

import * as api from "./api.js";
import { acknowledged } from "./actions.js";
import { el, mark, printable, replace, section } from "./dom.js";
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
    this.open = []; // the open drifts, which are before all others
    this.cards = new Map();
    this.list = el("ol.drifts");
    this.none = el("p.soft", null, "None yet.");
    this.more = el("button", { type: "button", hidden: true, onclick: () => this.older() }, "Show earlier ones");
    this.node = section("Drifts and recoveries", this.none, this.list, el("p", null, this.more));
  }

  async refresh() {
    const { shown } = this;
    const fresh = await api.findings(this.of.monitor, shown, { segment: this.of.values });
    if (shown !== this.shown) return; // older ones were requested meanwhile
    this.more.hidden = fresh.length < shown || shown === MOST;
    this.all = fresh;
    this.render();
  }

  async older() {
    const before = this.all.length;
    this.shown = Math.min(this.shown + PAGE, MOST);
    try {
      await this.refresh();
      this.cards.get(this.all[before]?.id)?.node.querySelector("summary").focus();
    } catch (error) {
      this.notice(`Earlier ones could not be loaded: ${error.message}`, true);
    }
  }

  // The open drifts of the monitor, {segment, at}.
  stand(open) {
    const keys = (open ?? []).map(({ segment, at }) => JSON.stringify([segment, at]));
    if (keys.join() === this.open.join()) return;
    this.open = keys;
    this.render();
  }

  render() {
    this.none.hidden = this.all.length > 0;
    const old = this.all.findIndex((one) => this.cards.has(one.id));
    this.all.forEach((one, place) => {
      let card = this.cards.get(one.id);
      if (!card) this.cards.set(one.id, (card = this.card(one)));
      if (place < old) card.node.classList.add("fresh");
      card.update(one, one.kind === "drift" && this.open.includes(JSON.stringify([one.segment, one.at])));
      if (this.list.children[place] !== card.node) this.list.insertBefore(card.node, this.list.children[place] ?? null);
    });
  }

  card(one) {
    const tag = el("span.tag", { hidden: true }, "Open");
    const note = el("p.soft");
    const found = seconds(one.time);
    const body = el("div.body");
    const details = el("details", { ontoggle: () => { if (details.open && !body.firstChild) this.fill(body, one, note); } },
      el("summary", null, mark(SHAPES[one.kind] ?? "stable"), el("b", null, KINDS[one.kind] ?? printable(one.kind)), " ",
        el("span.soft.num", null, found === null ? `event ${whole(one.at)}` : clock(found)), " ",
        one.segment && el("span.name", null, segment(one.segment), " "), el("span.what", null, moves(one)), " ", tag),
      body);
    const update = (fresh, open) => {
      tag.hidden = !open;
      note.textContent = fresh.acknowledged ? acknowledged(fresh) : "";
    };
    return { node: el(`li.drift.${one.kind}`, { "data-id": one.id }, details), update };
  }

  fill(body, one, note) {
    const tools = el("div.buttons", null,
      el("button", { type: "button", onclick: () => this.show(one) }, "Show in the charts"),
      one.kind === "drift" && [
        el("button", { type: "button", onclick: () => this.actions.ids(one) }, "Download training IDs"),
        el("button", { type: "button", onclick: () => this.actions.see(one) }, "Acknowledge"),
      ]);
    replace(body, one.changes?.length ? el("ul.moves", null, one.changes.map((change) => this.move(change, one))) : el("p", null, moves(one)),
      el("div.facts", null, this.facts(one), this.matrices(one)), note, tools);
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
