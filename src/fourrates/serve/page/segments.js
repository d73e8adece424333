// The segments of a monitor, those with the most evidence first, a page at a time: a thousand are as quick as three.

import * as api from "./api.js";
import { el, meter, replace, say, section } from "./dom.js";
import { byOrder, percent, rate, segment, short, whole } from "./words.js";

const PAGE = 25;
const SHOWN = 4; // rates in columns of their own

export class Segments {
  constructor(monitor) {
    this.monitor = monitor;
    this.offset = 0;
    this.total = 0;
    this.asked = 0; // questions so far: only the answer to the latest is shown
    this.lead = el("p.soft");
    this.head = el("tr");
    this.body = el("tbody");
    this.place = el("span.num", { role: "status" });
    this.back = el("button", { type: "button", onclick: () => this.go(-PAGE) }, "Previous");
    this.next = el("button", { type: "button", onclick: () => this.go(PAGE) }, "Next");
    this.pager = el("div.tools", null, this.back, this.next, this.place);
    this.table = el("div.scroll", { tabindex: 0, role: "region", "aria-label": "Segments" }, el("table.streams.segments", null, el("thead", null, this.head), this.body));
    this.node = section("Segments, the most evidence first", this.lead, this.table, this.pager);
    this.node.hidden = true;
  }

  async go(step) {
    this.offset = Math.min(Math.max(0, this.offset + step), Math.max(0, this.total - 1));
    await this.refresh();
  }

  async refresh() {
    const { offset } = this;
    const mine = ++this.asked;
    const { segments, total } = await api.segments(this.monitor, offset, PAGE);
    if (mine !== this.asked) return; // the reader, or the stream, went on while the answer was under way
    this.total = total;
    this.node.hidden = total === 0;
    if (!total) return;
    const rates = [...new Set(segments.flatMap((one) => Object.keys(one.rates ?? {})))].sort(byOrder).slice(0, SHOWN);
    replace(this.head, ["segment", "status", "evidence", "events", ...rates.map(short)].map((name) => el("th", { scope: "col" }, name)));
    replace(this.body, segments.map((one) => this.row(one, rates)));
    say(this.place, `${whole(offset + 1)} to ${whole(offset + segments.length)} of ${whole(total)}`);
    this.back.disabled = offset === 0;
    this.next.disabled = offset + segments.length >= total;
    this.pager.hidden = total <= PAGE;
    say(this.lead, total === 1 ? "Watched by itself, under the same budget." : "Each is watched by itself, all under one budget. Among many some always look odd; one that stands out does so for their number, too.");
  }

  row(one, rates) {
    const told = { stable: "stable", warning: "a warning stands", drifted: "drifted", waiting: "waiting for labels" };
    const bar = meter("evidence").show(one.evidence, one.status);
    return el("tr", null,
      el("th", { scope: "row" }, el("span.name", null, segment(one.segment)), one.discovery && el("span.tag.alarm", null, "stands out")),
      el("td", null, el(`i.dot.${one.status}`), told[one.status] ?? one.status),
      el("td.evidence", null, bar, el("span.num", null, percent(Math.min(one.evidence ?? 0, 1)))),
      el("td", null, whole(one.events)),
      rates.map((name) => el("td", { title: `of ${whole(one.rates?.[name]?.now?.n)}` }, rate(one.rates?.[name]?.now?.value))));
  }
}
