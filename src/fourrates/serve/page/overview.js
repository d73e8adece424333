// All monitors at a glance, a row each with state, worst rate against normal, its day, place, and arrival of labels and events.

import * as api from "./api.js";
import { el, mark, printable, say, section, shortened, spark } from "./dom.js";
import { rateNow } from "./segments.js";
import { STATES, URGENCY, address, ago, clock, delay, harm, isYoung, known, seconds, segment, several, short, span, verdict, whole } from "./words.js";

const MANY = 8; // from here on there is a field to find one by name
const COLUMNS = ["Monitor", "State", "Worst rate", "Last day", "Where", "Label lag", "Last event", "Last hour"];

export class Overview {
  constructor() {
    this.monitor = null; // the stream of all of them
    this.rows = new Map();
    this.all = new Map();
    this.state = el("em", null, "Loading…");
    this.rest = el("span");
    this.lead = el("p.lead");
    this.header = el("header", { "aria-busy": true }, el("h1", null, this.state, this.rest), this.lead);
    this.body = el("tbody", null, [...Array(6)].map(() => el("tr.skeleton", { "aria-hidden": true }, COLUMNS.map(() => el("td", null, el("i"))))));
    this.table = el("table.monitors", null, el("thead", null, el("tr", null, COLUMNS.map((name) => el("th", { scope: "col" }, name)))), this.body);
    this.field = el("input", { type: "search", placeholder: "Find a monitor", "aria-label": "Find a monitor by its name", oninput: () => this.arrange() });
    this.tools = el("div.tools", { hidden: true }, this.field);
    this.begin = this.beginning();
    this.begin.hidden = true;
    this.node = el("div", null, this.header, el("main", null, this.tools, this.table, this.begin));
  }

  async look() {
    this.all = new Map((await api.monitors()).map((one) => [one.name, one]));
    if (!this.loaded) this.body.replaceChildren();
    this.loaded = true;
    this.header.ariaBusy = "false";
    this.render();
  }

  // The server does not answer, and nothing was shown yet.
  unreachable() { if (!this.loaded) say(this.state, "The server does not answer."); }

  render() {
    if (!this.loaded) return;
    const monitors = [...this.all.values()];
    this.head(monitors);
    for (const [name, row] of this.rows) {
      if (this.all.has(name)) continue;
      row.node.remove();
      this.rows.delete(name);
    }
    for (const one of monitors) {
      if (!this.rows.has(one.name)) this.rows.set(one.name, new Row(one.name));
      this.rows.get(one.name).show(one);
    }
    this.tools.hidden = monitors.length <= MANY;
    this.table.hidden = monitors.length === 0;
    this.begin.hidden = monitors.length > 0;
    this.arrange();
  }

  // Those that need attention first, most harm first, then by name, so the order is stable while nothing happens.
  arrange() {
    const wanted = this.field.value.trim().toLowerCase();
    this.order = [...this.all.values()].sort((a, b) =>
      URGENCY.indexOf(a.status) - URGENCY.indexOf(b.status) || harm(b) - harm(a) || (a.name < b.name ? -1 : 1));
    this.order.forEach((one, place) => {
      const { node } = this.rows.get(one.name);
      node.hidden = !one.name.toLowerCase().includes(wanted);
      if (this.body.children[place] !== node) this.body.insertBefore(node, this.body.children[place] ?? null);
    });
  }

  head(monitors) {
    const of = (status) => monitors.filter((one) => one.status === status);
    const [drifted, warned] = [of("drifted"), of("warning")];
    const status = drifted.length ? "drifted" : warned.length ? "warning" : monitors.length ? "stable" : "waiting";
    const first = (drifted.length ? drifted : warned).reduce((a, b) => (a && harm(a) >= harm(b) ? a : b), null);
    let state = monitors.length ? "No drift is open" : "No monitors yet";
    if (first && monitors.length === 1) [state] = verdict(first);
    else if (drifted.length) state = `${whole(drifted.length)} of ${several(monitors.length, "monitor")} drifted`;
    else if (warned.length) state = several(warned.length, "warning");
    let rest = "";
    if (first) {
      const [word, text] = verdict(first);
      rest = monitors.length === 1 ? `: ${text}` : `. Worst: ${shortened(first.name, 40)}${word.replace(/^\w+/, "")}, ${text}`;
    }
    this.header.className = status;
    say(this.state, state);
    say(this.rest, rest);
    const hourly = monitors.reduce((sum, one) => sum + (one.events_last_hour ?? 0), 0);
    const waiting = monitors.reduce((sum, one) => sum + (one.waiting ?? 0), 0);
    const young = monitors.filter(isYoung).length;
    const phrases = [`${several(hourly, "event")} in the last hour`, waiting && `${several(waiting, "prediction")} awaiting labels`, young && `${several(young, "monitor")} too young to say`];
    say(this.lead, monitors.length ? phrases.filter(Boolean).join(" · ") : "Create a monitor, then send labelled predictions.");
    document.title = drifted.length ? `(${drifted.length} drifted) fourrates` : "fourrates";
  }

  // A server without monitors shows how to make the first.
  beginning() {
    const base = new URL("api/monitors/fraud", document.baseURI).href;
    const command = (text) => {
      const copy = el("button", { type: "button", onclick: () => navigator.clipboard?.writeText(text).then(() => say(copy, "Copied")) }, "Copy");
      return el("div.command", null, el("pre", { tabindex: 0 }, text), copy);
    };
    return section(
      "Your first monitor",
      command(`curl -X PUT ${base} -H 'Content-Type: application/json' \\\n  -d '{"labels": [0, 1], "positive": 1, "arl": 100000}'`),
      command(`curl ${base}/events -H 'Content-Type: application/json' \\\n  -d '{"y_true": [0, 1, 1], "y_pred": [0, 1, 0]}'`),
      el("p.soft", null, "To see a drift first, run ", el("code", null, "make serve-demo"), "."),
    );
  }
}

class Row {
  constructor(name) {
    this.cells = Object.fromEntries(["state", "rate", "spark", "where", "lag", "last", "hour"].map((key, i) => [key, el(`td.${key}`, { "data-label": COLUMNS[i + 1] })]));
    this.shown = {};
    this.node = el("tr", null, el("th", { scope: "row" }, el("a.name", { href: address(name) }, shortened(name))), Object.values(this.cells));
  }

  // Touch a cell only when its text has changed.
  put(key, ...parts) {
    const text = JSON.stringify(parts.map((part) => part?.outerHTML ?? part));
    if (this.shown[key] === text) return;
    this.shown[key] = text;
    this.cells[key].replaceChildren(...parts.filter(Boolean));
  }

  show(one) {
    const { worst, status } = one;
    this.node.className = `monitor ${status}`;
    const soft = (text) => el("span.soft", null, text);
    const since = seconds(one.since);
    const silenced = seconds(one.silenced_until) > Date.now() / 1000;
    const word = isYoung(one) ? "Young" : STATES[status] ?? printable(status);
    this.put("state", mark(isYoung(one) ? "waiting" : status), el("b", null, word), since !== null && soft(` ${span(Date.now() / 1000 - since)}`), silenced && soft(` silenced until ${clock(seconds(one.silenced_until))}`));
    if (!worst || status === "waiting") this.put("rate", soft("–"));
    else this.put("rate", `${short(worst.rate)} `, ...rateNow(worst.rate, worst, status === "drifted"));
    this.put("spark", spark(one.spark, worst?.normal?.n ? worst.normal.value : null));
    const harmed = one.open?.find((open) => open.segment !== null)?.segment;
    const more = (one.drifted_segments ?? 0) - 1;
    if (harmed) this.put("where", el("a", { href: address(one.name, harmed) }, segment(harmed)), more > 0 && soft(` +${whole(more)}`));
    else this.put("where", soft(status === "drifted" ? "overall" : one.segments ? several(one.segments, "segment") : ""));
    const last = seconds(one.last_event);
    this.put("lag", known(one.label_delay) ? delay(one.label_delay) : soft(one.waiting ? `${whole(one.waiting)} waiting` : "–"));
    this.put("last", last === null ? soft("none yet") : ago(last));
    this.put("hour", whole(one.events_last_hour));
  }
}
