// The segments of a monitor, a page at a time, those with an open or recently closed drift first, then by alarm level.

import * as api from "./api.js";
import { el, follow, mark, meter, section } from "./dom.js";
import { STATES, address, byOrder, clock, interval, isRecall, needs, percent, rate, seconds, segment, short, whole } from "./words.js";

const PAGE = 20;
const SHOWN = 4; // rates with their own columns

export class Segments {
  constructor(monitor) {
    this.monitor = monitor;
    this.offset = 0;
    this.total = 0;
    this.pinned = []; // the segments to draw over the large chart
    this.asked = 0; // questions so far; only the answer to the latest is shown
    this.node = el("section", { hidden: true });
  }

  async go(step) {
    this.offset = Math.min(Math.max(0, this.offset + step), Math.max(0, this.total - 1));
    await this.refresh();
  }

  async refresh() {
    const { offset } = this;
    const mine = ++this.asked;
    const { segments, total } = await api.segments(this.monitor, { limit: PAGE, offset });
    if (mine !== this.asked) return; // the reader, or the stream, moved while the answer was under way
    if (offset === 0) this.pinned = segments.filter((one) => one.pinned).map((one) => one.segment);
    this.total = total;
    this.node.hidden = total === 0;
    if (total) follow(this.node, this.drawn(segments));
  }

  drawn(segments) {
    const { offset, total } = this;
    const drop = ({ now, normal, enough }) => (now?.n >= enough && normal?.n ? normal.value - now.value : 0);
    const fall = (name) => Math.max(0, ...segments.filter((one) => one.pinned).map((one) => drop(one.rates[name]))); // of many classes, those that fell
    const rates = [...new Set(segments.flatMap((one) => Object.keys(one.rates ?? {})))].filter(isRecall).sort((a, b) => byOrder(a, b) || fall(b) - fall(a)).slice(0, SHOWN);
    const go = (text, step, last) => el("button", { type: "button", disabled: last, onclick: () => this.go(step) }, text);
    const head = el("tr", null, ["Segment", "State", ...rates.map(short), "Alarm level", "Events"].map((name) => el("th", { scope: "col" }, name)));
    const table = el("table.segments", null, el("thead", null, head), el("tbody", null, segments.map((one) => this.row(one, rates))));
    return section("Segments", el("p.soft", null, "Each is watched on its own, all under one false-alarm budget. Significant: also after correcting for their number."),
      el("div.scroll", { tabindex: 0, role: "region", "aria-label": "Segments" }, table),
      el("div.tools", { hidden: total <= PAGE }, go("Previous", -PAGE, offset === 0), go("Next", PAGE, offset + segments.length >= total),
        el("span.num", { role: "status" }, `${whole(offset + 1)} to ${whole(offset + segments.length)} of ${whole(total)}`)));
  }

  row(one, rates) {
    const silenced = seconds(one.silenced_until) > Date.now() / 1000;
    return el(`tr.${one.status}`, { "data-id": JSON.stringify(one.segment) },
      el("th", { scope: "row" }, el("a.name", { href: address(this.monitor, one.segment) }, segment(one.segment))),
      el("td", null, mark(one.status), STATES[one.status] ?? one.status, one.pinned && one.status !== "drifted" && el("span.soft", null, ", lately drifted"), one.discovery && el("span.tag", null, "Significant"), silenced && el("span.soft", null, ` silenced until ${clock(seconds(one.silenced_until))}`)),
      rates.map((name) => el("td", null, one.rates?.[name] ? rateNow(name, one.rates[name], one.status === "drifted") : "–")),
      el("td.level", null, meter(one.evidence, one.status), el("span.num", null, one.status === "drifted" ? "alarm open" : percent(Math.min(one.evidence ?? 0, 1)))),
      el("td.num", null, whole(one.events)));
  }
}

// A rate now against normal; an interval while a drift is open and there are few observations, or how many more it needs.
export function rateNow(name, state, drifted) {
  const { now, normal, enough } = state;
  const usual = el("span.soft", null, normal?.n ? ` normally ${rate(normal.value)}` : "");
  if (now?.n >= enough) return [el(drifted && now.value < normal?.value ? "b.num.worse" : "b.num", { title: `${interval(state)} of ${whole(now.n)}` }, rate(now.value)), usual];
  const between = drifted && state.state !== "normal" && interval(state);
  return between ? [el("span.num", null, between), usual] : [el("span.soft", null, `needs ${needs(name, state)}`)];
}
