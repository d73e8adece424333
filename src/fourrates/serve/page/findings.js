// Drifts and recoveries, latest first, a line each, with intervals, times and matrices behind it.

import * as api from "./api.js";
import { acknowledged } from "./actions.js";
import { el, mark, printable, replace, section } from "./dom.js";
import { matrix } from "./matrix.js";
import { ENDED, KINDS, clock, known, moves, rate, seconds, segment, several, short, span, whole } from "./words.js";

const PAGE = 12;
const SHAPES = { drift: "drifted", confirmation: "drifted", shift: "warning" };

export class Findings {
  // `of` names the monitor and its segment; `labels()` gives its classes, `show(finding)` zooms the charts.
  constructor(of, { labels, show, actions, notice }) {
    Object.assign(this, { of, labels, show, actions, notice });
    this.known = new Map(); // by id
    this.order = []; // ids, latest first, as the server lists them
    this.open = []; // the open drifts, which come before all others
    this.cards = new Map();
    this.turn = Promise.resolve();
    this.list = el("ol.drifts");
    this.none = el("p.soft", null, "None yet.");
    this.more = el("button", { type: "button", hidden: true, onclick: () => this.older() }, "Show earlier ones");
    this.node = section("Drifts and recoveries", this.none, this.list, el("p", null, this.more));
  }

  get all() { return this.order.map((id) => this.known.get(id)); }

  keep(findings) {
    for (const one of findings) { // an answer that was under way may not know yet what was acknowledged meanwhile
      const before = this.known.get(one.id);
      this.known.set(one.id, one.acknowledged || !before?.acknowledged ? one : before);
    }
  }

  // One request at a time, or an overtaking answer would put them out of order.
  inTurn(question) {
    const turn = this.turn.then(question);
    this.turn = turn.catch(() => {});
    return turn;
  }

  refresh() { return this.inTurn(() => this.latest()); }

  async older() {
    try {
      await this.inTurn(() => this.earlier());
    } catch (error) {
      this.notice(`Earlier ones could not be loaded: ${error.message}`, true);
    }
  }

  ask(limit, before) { return api.findings(this.of.monitor, limit, { segment: this.of.segment, before }); }

  async latest() {
    // All that are on the page, to show acknowledgements made elsewhere.
    const limit = Math.max(PAGE, this.order.length);
    const before = new Set(this.order);
    const fresh = await this.ask(limit);
    this.more.hidden = fresh.length < limit;
    this.keep(fresh);
    const came = this.order.filter((id) => !before.has(id)); // while we asked: newer than the answer
    this.order = [...new Set([...came, ...fresh.map((one) => one.id)])];
    this.render();
  }

  async earlier() {
    const earlier = await this.ask(PAGE, this.order.at(-1));
    this.more.hidden = earlier.length < PAGE;
    this.keep(earlier);
    this.order = [...new Set([...this.order, ...earlier.map((one) => one.id)])];
    this.render();
    this.cards.get(earlier[0]?.id)?.node.querySelector("summary").focus();
  }

  add(finding) {
    const fresh = !this.known.has(finding.id);
    this.keep([finding]);
    if (fresh) this.order.unshift(finding.id);
    this.render();
    if (fresh) this.cards.get(finding.id).node.classList.add("fresh");
  }

  // The open drifts of the monitor, {segment, at}.
  stand(open) {
    const keys = (open ?? []).map(({ segment, at }) => JSON.stringify([segment, at]));
    if (keys.join() === this.open.join()) return;
    this.open = keys;
    this.render();
  }

  render() {
    this.none.hidden = this.order.length > 0;
    this.all.forEach((one, place) => {
      let card = this.cards.get(one.id);
      if (!card) this.cards.set(one.id, (card = this.card(one)));
      card.update(this.known.get(one.id), one.kind === "drift" && this.open.includes(JSON.stringify([one.segment, one.at])));
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
        el("button", { type: "button", onclick: () => this.actions.see(this.known.get(one.id)) }, "Acknowledge"),
      ]);
    replace(body, one.changes?.length ? el("ul.moves", null, one.changes.map((change) => this.move(change, one))) : el("p", null, printable(one.text ?? "")),
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
    if (one.started_between) rows.push(row("Started between (90 %)", `events ${one.started_between.map(whole).join(" and ")}`));
    if (one.kind === "drift" && known(one.started)) rows.push(row("Retrain on", several(one.at - one.started + 1, "event")));
    return el("dl", null, rows.flat());
  }

  matrices(one) {
    const labels = this.labels();
    if (!labels || !one.confusion_before || !one.confusion_after) return null;
    return el("div.matrices", null, matrix("Before", one.confusion_before, labels), matrix("Since it started", one.confusion_after, labels));
  }
}
