// All monitors at a glance, a row each with state, worst rate against normal, its day, place, and arrival of labels and events.

import * as api from "./api.js";
import { el, follow, mark, printable, section, shortened, spark } from "./dom.js";
import { rateNow } from "./segments.js";
import { STATES, URGENCY, address, ago, clock, delay, harm, isYoung, known, seconds, segment, several, short, span, verdict, whole } from "./words.js";

const MANY = 8; // from here on there is a field to find one by name
const COLUMNS = { name: "Monitor", state: "State", rate: "Worst rate", spark: "Last day", where: "Where", lag: "Label lag", last: "Last event", hour: "Last hour" };
const soft = (...text) => el("span.soft", null, text);

export class Overview {
  constructor() {
    this.monitor = null; // the stream of all of them
    this.all = null; // the monitors, when they are known
    this.wanted = ""; // a part of the names to show
    this.state = "Loading…";
    this.node = el("div");
    this.render();
  }

  async look() {
    this.all = await api.monitors();
    this.render();
  }

  // The server does not answer, and nothing was shown yet.
  unreachable() {
    this.state = "The server does not answer.";
    this.render();
  }

  render() { follow(this.node, el("div", null, this.all ? this.shown(this.all) : this.loading())); }

  loading() {
    const skeleton = [...Array(6)].map(() => el("tr.skeleton", { "aria-hidden": true }, Object.keys(COLUMNS).map(() => el("td", null, el("i")))));
    return [el("header", { "aria-busy": true }, el("h1", null, el("em", null, this.state))), el("main", null, table(skeleton))];
  }

  // Those that need attention first, most harm first, then by name, so the order is stable while nothing happens.
  shown(monitors) {
    monitors.sort((a, b) => URGENCY.indexOf(a.status) - URGENCY.indexOf(b.status) || harm(b) - harm(a) || (a.name < b.name ? -1 : 1));
    const field = () => el("input", { type: "search", placeholder: "Find a monitor", "aria-label": "Find a monitor by its name", oninput: (event) => { this.wanted = event.target.value.trim().toLowerCase(); this.render(); } });
    const rows = monitors.map((one) => row(one, one.name.toLowerCase().includes(this.wanted)));
    return [this.head(monitors), el("main", null, monitors.length > MANY && el("div.tools", null, field()), monitors.length ? table(rows) : this.beginning())];
  }

  // A server without monitors shows how to make the first.
  beginning() {
    const base = new URL("api/monitors/fraud", document.baseURI).href;
    const copy = (text) => navigator.clipboard?.writeText(text).then(() => { this.copied = text; this.render(); });
    const command = (text) => el("div.command", null, el("pre", { tabindex: 0 }, text),
      el("button", { type: "button", onclick: () => copy(text) }, this.copied === text ? "Copied" : "Copy"));
    return section(
      "Your first monitor",
      command(`curl -X PUT ${base} -H 'Content-Type: application/json' \\\n  -d '{"labels": [0, 1], "positive": 1, "arl": 100000}'`),
      command(`curl ${base}/events -H 'Content-Type: application/json' \\\n  -d '{"y_true": [0, 1, 1], "y_pred": [0, 1, 0]}'`),
      el("p.soft", null, "To see a drift first, run ", el("code", null, "make serve-demo"), "."),
    );
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
    const hourly = monitors.reduce((sum, one) => sum + (one.events_last_hour ?? 0), 0);
    const waiting = monitors.reduce((sum, one) => sum + (one.waiting ?? 0), 0);
    const young = monitors.filter(isYoung).length;
    const phrases = [`${several(hourly, "event")} in the last hour`, waiting && `${several(waiting, "prediction")} awaiting labels`, young && `${several(young, "monitor")} too young to say`];
    document.title = drifted.length ? `(${drifted.length} drifted) fourrates` : "fourrates";
    return el(`header.${status}`, { "aria-busy": "false" }, el("h1", null, el("em", null, state), el("span", null, rest)),
      el("p.lead", null, monitors.length ? phrases.filter(Boolean).join(" · ") : "Create a monitor, then send labelled predictions."));
  }
}

const table = (rows) => el("table.monitors", null, el("thead", null, el("tr", null, Object.values(COLUMNS).map((name) => el("th", { scope: "col" }, name)))), el("tbody", null, rows));

function row(one, wanted) {
  const { worst, status } = one;
  const since = seconds(one.since);
  const silenced = seconds(one.silenced_until) > Date.now() / 1000;
  const word = isYoung(one) ? "Young" : STATES[status] ?? printable(status);
  const harmed = one.open?.find((open) => open.segment !== null)?.segment;
  const more = (one.drifted_segments ?? 0) - 1;
  const last = seconds(one.last_event);
  const cells = {
    state: [mark(isYoung(one) ? "waiting" : status), el("b", null, word), since !== null && soft(` ${span(Date.now() / 1000 - since)}`), silenced && soft(` silenced until ${clock(seconds(one.silenced_until))}`)],
    rate: !worst || status === "waiting" ? soft("–") : [`${short(worst.rate)} `, rateNow(worst.rate, worst, status === "drifted")],
    spark: spark(one.spark, worst?.normal?.n ? worst.normal.value : null),
    where: harmed ? [el("a", { href: address(one.name, harmed) }, segment(harmed)), more > 0 && soft(` +${whole(more)}`)]
      : soft(status === "drifted" ? "overall" : one.segments ? several(one.segments, "segment") : ""),
    lag: known(one.label_delay) ? delay(one.label_delay) : soft(one.waiting ? `${whole(one.waiting)} waiting` : "–"),
    last: last === null ? soft("none yet") : ago(last),
    hour: whole(one.events_last_hour),
  };
  return el(`tr.monitor.${status}`, { "data-id": one.name, hidden: !wanted }, el("th", { scope: "row" }, el("a.name", { href: address(one.name) }, shortened(one.name))),
    Object.entries(cells).map(([key, parts]) => el(`td.${key}`, null, parts)));
}
