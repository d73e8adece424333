// All monitors at a glance: how each stands, since when, how near it is to an alarm, and whether events still come.

import * as api from "./api.js";
import { el, meter, printable, say, section, shortened } from "./dom.js";
import { STATES, URGENCY, ago, clock, headline, percent, seconds, several, span, story, whole, withFinding } from "./words.js";

const MANY = 8; // from here on there is a field to find one by name

export const address = (name) => `#/monitor/${encodeURIComponent(name)}`;

export class Overview {
  constructor() {
    this.monitor = null; // the stream of all of them
    this.rows = new Map();
    this.all = new Map();
    this.asked = 0; // questions so far: only the answer to the latest is shown
    this.told = new Map(); // what the stream told since then, by name; null for a monitor that was removed
    this.state = el("em");
    this.rest = el("span");
    this.lead = el("p.lead");
    this.header = el("header", null, el("p.kicker", null, "fourrates monitors"), el("h1", null, this.state, this.rest), this.lead);
    this.list = el("ul.monitors");
    this.field = el("input", { type: "search", placeholder: "Find a monitor", "aria-label": "Find a monitor by its name", oninput: () => this.arrange() });
    this.tools = el("div.tools", { hidden: true }, this.field);
    this.begin = this.beginning();
    this.main = el("main", null, this.tools, this.list, this.begin);
    this.node = el("div", null, this.header, this.main);
  }

  close() { this.asked++; }

  async refresh() {
    const mine = ++this.asked;
    this.told.clear();
    const fresh = await api.monitors();
    if (mine !== this.asked) return;
    this.all = new Map(fresh.map((one) => [one.name, one]));
    for (const [name, one] of this.told) { // the stream went on while the answer was under way
      if (one === null) this.all.delete(name);
      else if (!(one.events < this.all.get(name)?.events)) this.all.set(name, one);
    }
    this.loaded = true;
    this.render();
  }

  event(name, data) {
    if (name === "summary") this.tell(data.name, data);
    else if (name === "removed") this.tell(data.name, null);
    else if (name === "finding") {
      const one = this.all.get(data.monitor);
      if (!one) return;
      this.tell(data.monitor, withFinding(one, data));
    } else return;
    this.render();
  }

  tell(name, one) {
    this.told.set(name, one);
    if (one === null) this.all.delete(name);
    else this.all.set(name, one);
  }

  tick() { if (this.loaded) this.render(); }

  render() {
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
    this.begin.hidden = monitors.length > 0 || !this.loaded;
    this.arrange();
  }

  // Those that need a person first, then by name: the order does not change while nothing happens.
  arrange() {
    const wanted = this.field.value.trim().toLowerCase();
    const order = [...this.all.values()].sort(
      (a, b) => URGENCY.indexOf(a.status) - URGENCY.indexOf(b.status) || (a.name < b.name ? -1 : 1),
    );
    order.forEach((one, place) => {
      const { node } = this.rows.get(one.name);
      node.hidden = !one.name.toLowerCase().includes(wanted);
      if (this.list.children[place] !== node) this.list.insertBefore(node, this.list.children[place] ?? null);
    });
  }

  head(monitors) {
    const drifted = monitors.filter((one) => one.status === "drifted");
    const warned = monitors.filter((one) => one.status === "warning");
    const segments = monitors.filter((one) => one.status !== "drifted" && one.drifted_segments);
    let state = "No monitors", rest = " yet", status = "stable";
    if (drifted.length) {
      status = "drifted";
      const latest = drifted.reduce((a, b) => (seconds(a.since) >= seconds(b.since) ? a : b));
      state = monitors.length === 1 ? "Drifted" : `${whole(drifted.length)} of ${several(monitors.length, "monitor")} drifted`;
      rest = `: ${monitors.length > 1 ? `${shortened(latest.name, 40)}, where ` : ""}${headline(latest)[1]}`;
    } else if (warned.length) {
      status = "warning";
      [state, rest] = [warned.length === 1 ? "A warning" : several(warned.length, "warning"), `: ${warned.map((one) => shortened(one.name, 40)).slice(0, 3).join(", ")}`];
    } else if (monitors.length) {
      [state, rest] = ["No drift", segments.length ? ` as a whole; segments of ${shortened(segments[0].name, 40)} drifted` : ""];
    }
    this.header.className = status;
    say(this.state, state);
    say(this.rest, rest);
    const hourly = monitors.reduce((sum, one) => sum + (one.events_per_hour ?? 0), 0);
    const waiting = monitors.reduce((sum, one) => sum + (one.waiting ?? 0), 0);
    const counted = monitors.length > 1 ? `${several(monitors.length, "monitor")}, ` : "";
    say(this.lead, monitors.length ? `${counted}${several(hourly, "event")} an hour${waiting ? `; ${several(waiting, "prediction")} wait for labels` : ""}.` : "");
    document.title = drifted.length ? `(${drifted.length} drifted) fourrates` : "fourrates";
  }

  // A server that knows no monitor says how to make the first one.
  beginning() {
    const base = new URL("api/monitors/fraud", document.baseURI).href;
    const command = (text) => el("pre", { tabindex: 0 }, text);
    return section(
      "The first monitor",
      el("p", null, "A monitor is made by naming it, and fed with pairs of what was true and what your classifier said:"),
      command(`curl -X PUT ${base} -H 'Content-Type: application/json' \\\n  -d '{"labels": [0, 1], "positive": 1, "arl": 100000}'`),
      command(`curl ${base}/events -H 'Content-Type: application/json' \\\n  -d '{"y_true": [0, 1, 1], "y_pred": [0, 1, 0]}'`),
      el("p.soft", null, "It appears here as soon as it is there."),
    );
  }
}

// Since when it is stable: since the last drift ended, if there was one.
function calm(one) {
  if (one.status !== "stable") return "";
  const last = one.last_finding;
  if (last?.closes && !last.segment) return `since ${clock(seconds(last.time))}`;
  return one.drifts ? "" : "no drift so far";
}

class Row {
  constructor(name) {
    const fact = (label, ...nodes) => el("div", null, el("dt", null, label), el("dd.num", null, ...nodes));
    this.dot = el("i.dot");
    this.status = el("b");
    this.since = el("span.soft");
    this.bar = meter("evidence");
    this.share = el("span.num");
    this.hourly = el("span");
    this.last = el("span.soft");
    this.waiting = el("span");
    this.story = el("p.story");
    this.node = el(
      "li",
      null,
      el("h2", null, el("a.name", { href: address(name) }, shortened(name))),
      el(
        "dl",
        null,
        fact("status", this.dot, this.status, " ", this.since),
        fact("evidence", this.bar, this.share),
        fact("events an hour", this.hourly, " ", this.last),
        fact("labels waiting", this.waiting),
      ),
      this.story,
    );
  }

  show(one) {
    this.node.className = `monitor ${one.status}`;
    this.dot.className = `dot ${one.status}`;
    const since = seconds(one.since);
    const last = seconds(one.last_event);
    say(this.status, STATES[one.status]?.toLowerCase() ?? printable(one.status));
    say(this.since, since === null ? calm(one) : `since ${clock(since)}, ${span(Date.now() / 1000 - since)}`);
    this.bar.show(one.evidence, one.status);
    say(this.share, one.status === "drifted" ? "alarm" : percent(Math.min(one.evidence ?? 0, 1)));
    say(this.hourly, whole(one.events_per_hour));
    say(this.last, last === null ? "none yet" : `last ${ago(last)}`);
    say(this.waiting, whole(one.waiting));
    const silenced = seconds(one.silenced_until);
    const notes = [];
    const [, rest] = headline(one);
    if (one.status !== "stable" || one.drifted_segments) notes.push(rest);
    else if (one.last_finding) notes.push(`last finding: ${story(one.last_finding)}`);
    if (one.segments && !rest.includes("segment")) notes.push(one.drifted_segments ? `${whole(one.drifted_segments)} of ${several(one.segments, "segment")} drifted` : `${several(one.segments, "segment")}, all stable`);
    if (silenced && silenced > Date.now() / 1000) notes.push(`alerts are silenced until ${clock(silenced)}`);
    say(this.story, notes.filter(Boolean).join(" · "));
  }
}
