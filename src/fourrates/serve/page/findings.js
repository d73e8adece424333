// Findings, latest first: drifts, what became of them, and shifts of the class mix; each a card with what moved and since when.

import * as api from "./api.js";
import { el, printable, replace, section } from "./dom.js";
import { matrix } from "./matrix.js";
import { ENDED, clock, rate, seconds, segment, several, short, whole } from "./words.js";

const PAGE = 5;

export class Findings {
  // `monitor` names it; `labels()` gives its classes; `show(finding)` zooms the charts; `notice` tells a person.
  constructor(monitor, { labels, show, notice }) {
    Object.assign(this, { monitor, labels, show, notice });
    this.known = new Map(); // by id
    this.order = []; // ids, latest first, as the server lists them
    this.standing = null; // the open drift of the whole, which is shown before all others
    this.cards = new Map();
    this.turn = Promise.resolve();
    this.list = el("ol.drifts");
    this.none = el("p.soft", null, "Nothing yet. A drift appears here the moment the evidence suffices.");
    this.more = el("button", { type: "button", hidden: true, onclick: () => this.older() }, "Show earlier ones");
    this.node = section("What was found, latest first", this.none, this.list, el("p", null, this.more));
  }

  get shown() { return this.standing === null ? this.order : [this.standing, ...this.order.filter((id) => id !== this.standing)]; }

  get all() { return this.shown.map((id) => this.known.get(id)); }

  // The open drift of the whole, or null: segments may have drifted since, more than fit on a page.
  stand(finding) {
    if (finding) this.keep([finding]);
    const id = finding?.id ?? null;
    if (id === this.standing) return;
    this.standing = id;
    this.render();
  }

  keep(findings) {
    for (const one of findings) { // an answer that was under way may not know yet what was acknowledged meanwhile
      const acknowledged = one.acknowledged ?? this.known.get(one.id)?.acknowledged ?? null;
      this.known.set(one.id, { ...one, acknowledged });
    }
  }

  // One question after the other: an answer that overtook another would put them out of order.
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

  async latest() {
    // As many as are on the page, so that an acknowledgement made elsewhere is seen too.
    const limit = Math.max(PAGE, this.order.length);
    const before = new Set(this.order);
    const fresh = await api.findings(this.monitor, limit);
    this.more.hidden = fresh.length < limit;
    this.keep(fresh);
    const came = this.order.filter((id) => !before.has(id)); // while we asked: newer than the answer
    this.order = [...new Set([...came, ...fresh.map((one) => one.id)])];
    this.render();
  }

  async earlier() {
    const earlier = await api.findings(this.monitor, PAGE, this.order.at(-1));
    this.more.hidden = earlier.length < PAGE;
    this.keep(earlier);
    this.order = [...new Set([...this.order, ...earlier.map((one) => one.id)])];
    this.render();
    this.cards.get(earlier[0]?.id)?.node.focus();
  }

  add(finding) {
    const fresh = !this.known.has(finding.id);
    this.keep([finding]);
    if (fresh) this.order.unshift(finding.id);
    this.render();
    if (fresh) this.cards.get(finding.id).node.classList.add("fresh");
  }

  render() {
    const all = this.all;
    this.none.hidden = all.length > 0;
    for (const [id, card] of this.cards) {
      if (this.shown.includes(id)) continue;
      card.node.remove();
      this.cards.delete(id);
    }
    all.forEach((one, place) => {
      let card = this.cards.get(one.id);
      if (!card) this.cards.set(one.id, (card = this.card(one)));
      card.acknowledged(one.acknowledged);
      card.stands.hidden = one.id !== this.standing;
      if (this.list.children[place] !== card.node) this.list.insertBefore(card.node, this.list.children[place] ?? null);
    });
  }

  card(one) {
    const found = seconds(one.time);
    const titles = {
      drift: "Drift", confirmation: "Drift confirmed", withdrawal: "Drift withdrawn", recovery: "Recovery",
      improvement: "Improvement, not back at normal", acceptance: "New level accepted as normal", shift: "The classes shifted",
    };
    const learn = el("p.learn");
    const stands = el("span.tag.alarm", { hidden: true }, "open");
    const note = el("span.soft");
    const confirm = el("button", { type: "button", onclick: () => this.acknowledge(one, confirm) }, "Acknowledge");
    const tools = el("div.buttons", null,
      !one.segment && one.kind !== "shift" && el("button", { type: "button", onclick: () => this.show(one) }, "Show in the charts"),
      one.kind === "drift" && el("button", { type: "button", onclick: (event) => this.examples(one, learn, event.target) }, "Examples to learn from"),
      confirm,
      note);
    const node = el(`li.drift.${one.kind}`, { tabindex: -1, "data-id": one.id },
      el("header", null,
        el("h3", null, `${titles[one.kind] ?? printable(one.kind)}, ${found === null ? `event ${whole(one.at)}` : clock(found, { exact: true })}`,
          one.segment && el("span.tag.plain.name", null, segment(one.segment)),
          one.kind === "recovery" && el("span.tag", null, "recovery"),
          stands),
        tools),
      one.changes?.length ? el("ul.moves", null, one.changes.map((change) => this.move(change, one))) : el("p", null, printable(one.text ?? "")),
      el("div.facts", null, this.facts(one), this.matrices(one)),
      learn);
    const acknowledged = (time) => {
      confirm.hidden = Boolean(time) || !["drift", "shift"].includes(one.kind); // what became of a drift asks nothing of anybody
      note.textContent = time ? `acknowledged ${clock(seconds(time))}` : "";
    };
    return { node, acknowledged, stands };
  }

  move(change, finding) {
    const { before, after } = change;
    // What came back is good news whichever way it went.
    const worse = change.direction === "down" && ["drift", "confirmation"].includes(finding.kind);
    const ended = ENDED.includes(finding.kind);
    const went = ended ? "" : change.direction === "down" ? " ↓ fell" : " ↑ rose";
    const verb = el(`strong.${worse ? "worse" : "better"}`, null, el("span.name", null, short(change.rate)), went);
    if (!before || !after) return el("li", null, verb);
    const interval = (share) => `${rate(share.lower)} to ${rate(share.upper)} of ${whole(share.n)}`;
    return el("li", null, verb, ended ? " was " : " from ", el("b.num", null, rate(before.value)), ended ? ", is " : " to ", el("b.num", null, rate(after.value)), " ",
      el("span.soft.num", null, `90 % intervals ${interval(before)}, ${interval(after)} observations`));
  }

  facts(one) {
    const began = seconds(one.started_time);
    const found = seconds(one.time);
    const row = (name, event, time) => [el("dt", null, name), el("dd.num", null, event, time && [el("br"), el("span.soft", null, time)])];
    const rows = [];
    if (one.started !== null && one.started !== undefined) rows.push(row("Started", `event ${whole(one.started)}`, began !== null && `about ${clock(began)}`));
    if (one.started_between) rows.push(row("90 % certain", `events ${one.started_between.map(whole).join(" to ")}`));
    rows.push(row("Found", `event ${whole(one.at)}`, found !== null && clock(found, { exact: true })));
    if (one.drift !== null && one.drift !== undefined) rows.push(row("Drift found", `event ${whole(one.drift)}`));
    if (one.kind === "drift" && one.started !== null) rows.push(row("Learn from", several(one.at - one.started + 1, "event")));
    if (one.segment) rows.push(row("Events counted", "within the segment"));
    return el("dl", null, rows.flat());
  }

  matrices(one) {
    const labels = this.labels();
    if (!labels) return null;
    const told = [];
    if (one.confusion_before && one.confusion_after) {
      told.push(matrix("Before", one.confusion_before, labels), matrix("Since it started", one.confusion_after, labels));
    } else if (one.confusion) told.push(matrix("Since the last reset", one.confusion, labels));
    return told.length ? el("div.matrices", null, told) : null;
  }

  async acknowledge(one, button) {
    button.disabled = true;
    try {
      const answer = await api.acknowledge(this.monitor, one.id);
      this.known.set(one.id, { ...one, acknowledged: answer?.acknowledged ?? new Date().toISOString() });
      this.render();
      this.cards.get(one.id)?.node.focus();
    } catch (error) {
      this.notice(`Not acknowledged: ${error.message}`, true);
    }
    button.disabled = false;
  }

  // The ids, to be saved: the next model learns from these.
  async examples(one, place, button) {
    button.disabled = true;
    try {
      const ids = await api.examples(this.monitor, one.id);
      if (!ids.length) {
        replace(place, "No ids were sent with these events, so there is nothing to look up.");
      } else {
        const href = URL.createObjectURL(new Blob([ids.map((id) => `${id}\n`)], { type: "text/plain" }));
        const shown = ids.slice(0, 5).map(printable).join(", ");
        replace(place, `${several(ids.length, "id")} from when it started: ${shown}${ids.length > 5 ? " … " : " "}`,
          el("a", { href, download: `drift-${one.id}-ids.txt` }, "Save all"));
        place.querySelector("a").focus();
      }
    } catch (error) {
      this.notice(`The examples could not be loaded: ${error.message}`, true);
    }
    button.disabled = false;
  }
}

