// One monitor: how it stands, its rates and the evidence over time, what was found, its segments, classes and settings.

import * as api from "./api.js";
import { Charts, Series } from "./charts.js";
import { el, meter, printable, say, section, shortened } from "./dom.js";
import { Arrivals, Classes, Settings } from "./facts.js";
import { Findings } from "./findings.js";
import { Segments } from "./segments.js";
import { advice, ago, clock, headline, percent, seconds, several, span, whole, withFinding } from "./words.js";

const POINTS = 600;
const PAUSE = 2000; // ms between two looks at what is not sent with the stream: segments, counts, intervals

const SILENCES = [["1 hour", 1], ["8 hours", 8], ["1 day", 24], ["1 week", 168]];

// The rates of the reference, by the names of the rates: recalls in the order of the labels, then precisions.
function references({ config, labels, rates }) {
  const counts = config?.reference;
  if (!counts) return null;
  const place = labels.map((label) => config.labels.indexOf(label));
  const shares = [(i) => counts[i], (i) => counts.map((row) => row[i])].flatMap((line) =>
    place.map((i) => counts[i][i] / line(i).reduce((a, b) => a + b, 0)));
  return Object.fromEntries(Object.keys(rates ?? {}).map((name, i) => [name, shares[i]]));
}

export class MonitorView {
  constructor(name, notice) {
    this.monitor = name;
    this.notice = notice;
    this.one = null;
    this.asked = 0; // questions for everything so far: only the answer to the latest is shown
    this.acted = 0; // what a person did so far
    this.ofWhole = []; // findings of the whole as of that question
    this.told = null; // the last summary of the stream since that question
    this.state = el("em");
    this.rest = el("span");
    this.lead = el("p.lead");
    this.advice = el("p.advice", { hidden: true });
    this.bar = meter("evidence");
    this.share = el("span.num");
    this.header = el("header", null,
      el("p.kicker", null, el("a", { href: "#/" }, "All monitors"), " / ", el("span.name", null, shortened(name))),
      el("h1", null, this.state, this.rest),
      this.lead,
      this.advice,
      el("div.standing", null, el("span.soft", null, "evidence"), this.bar, this.share, this.actions()));
    this.charts = new Charts();
    this.findings = new Findings(name, {
      labels: () => this.one?.labels,
      show: (finding) => this.charts.show(finding),
      notice,
    });
    this.segments = new Segments(name);
    this.classes = new Classes();
    this.arrivals = new Arrivals(name, notice);
    this.settings = new Settings();
    this.over = section("The rates over time", this.charts.node);
    this.main = el("main", { hidden: true }, this.over, this.findings.node, this.segments.node, this.classes.node, this.arrivals.node, this.settings.node);
    this.node = el("div", null, this.header, this.main);
  }

  close() {
    this.closed = true;
    this.asked++;
    clearTimeout(this.pending);
    this.charts.close();
  }

  // What came ---------------------------------------------------------------------------------------------------

  async refresh() {
    const mine = ++this.asked;
    const { acted } = this;
    this.told = null;
    this.charts.expect();
    try {
      const [one, series, ofWhole] = await Promise.all(
        [api.monitor(this.monitor), api.series(this.monitor, POINTS), api.overallFindings(this.monitor)]);
      if (mine !== this.asked) return;
      this.ofWhole = ofWhole;
      this.take(one, acted);
      this.main.hidden = false;
      await Promise.all([this.findings.refresh(), this.segments.refresh()]);
      if (mine !== this.asked) return;
      this.findings.stand(this.one.drift);
      this.charts.load(new Series(series));
      this.mark();
      this.render();
    } catch (error) {
      if (mine !== this.asked) return;
      if (error.status !== 404) throw error;
      say(this.state, "No such monitor");
      say(this.rest, "");
      say(this.lead, "It was deleted, or it never was. The list has those that are there.");
      this.main.hidden = true;
    }
  }

  // The charts have what was found in the whole, also where the list is full of segments.
  mark() {
    this.charts.mark([...new Map([...this.ofWhole, ...this.findings.all].map((one) => [one.id, one])).values()]);
  }

  // An answer that was under way while the stream went on, or a person did something, is older than that.
  take(one, acted) {
    this.one = {
      ...one,
      ...(this.told?.events > one.events ? this.told : {}),
      ...(acted === this.acted ? {} : { silenced_until: this.one?.silenced_until }),
    };
  }

  event(name, data) {
    if (name === "point" && data.monitor === this.monitor) this.charts.add(data);
    else if (name === "finding" && data.monitor === this.monitor) {
      this.findings.add(data);
      this.mark();
      if (this.one) this.one = withFinding(this.one, data);
      this.render();
      this.look(0);
    } else if (name === "summary" && data.name === this.monitor) {
      this.told = data;
      this.one = { ...this.one, ...data };
      this.render();
      this.look(PAUSE);
    } else if (name === "removed" && data.name === this.monitor) this.refresh();
  }

  // Fetch what the stream does not carry, at most every PAUSE and not while nobody looks.
  look(wait) {
    if (document.hidden || this.closed) return;
    const due = Date.now() + wait;
    if (this.looking || (this.pending && this.due <= due)) { // one that is under way may be too early for us
      if (this.looking) this.again = Math.min(this.again ?? wait, wait);
      return;
    }
    clearTimeout(this.pending);
    this.due = due;
    this.pending = setTimeout(() => this.lookNow(), wait);
  }

  async lookNow() {
    const { asked, acted } = this;
    this.pending = null;
    this.looking = true;
    try {
      const one = await api.monitor(this.monitor);
      if (asked === this.asked) {
        this.take(one, acted);
        this.render();
        await this.segments.refresh();
      }
    } catch { /* the connection tells */ }
    this.looking = false;
    const { again } = this;
    this.again = undefined;
    if (again !== undefined) this.look(again);
  }

  tick() { this.render(); }

  // What is shown -----------------------------------------------------------------------------------------------

  render() {
    const { one } = this;
    if (!one?.status) return;
    const [state, rest] = headline(one);
    this.header.className = one.status;
    say(this.state, state);
    say(this.rest, rest && (state === "Drifted" || state === "Recovered" || state === "Warning" ? `: ${rest}` : ` ${rest}`));
    document.title = `${state}: ${shortened(this.monitor, 40)}`;
    const last = seconds(one.last_event);
    const since = seconds(one.since);
    const told = [
      `${several(one.events, "event")}, ${whole(one.events_per_hour)} an hour${last === null ? "" : `, the last ${ago(last)}`}`,
      one.waiting ? `${several(one.waiting, "prediction")} wait for labels` : null,
      one.status === "drifted" && since !== null ? `drifted for ${span(Date.now() / 1000 - since)}` : null,
      one.segments && !rest.includes("segment") ? `${whole(one.drifted_segments)} of ${several(one.segments, "segment")} drifted` : null,
    ];
    say(this.lead, `${told.filter(Boolean).join("; ")}.`);
    this.advice.hidden = one.status !== "drifted";
    say(this.advice, one.status === "drifted" ? advice(one) : "");
    this.bar.show(one.evidence, one.status);
    const share = percent(Math.min(one.evidence ?? 0, 1));
    say(this.share, one.status === "drifted" ? `alarm; ${share} towards the next` : `${share} of an alarm`);
    const silenced = seconds(one.silenced_until);
    const quiet = silenced !== null && silenced > Date.now() / 1000;
    this.loud.hidden = quiet;
    this.quiet.hidden = !quiet;
    if (quiet) say(this.until, `Alerts are silenced until ${clock(silenced)}`);
    if (!this.main.hidden && (one.drift?.id ?? null) !== this.findings.standing) {
      this.findings.stand(one.drift);
      this.mark();
    }
    this.charts.state(one.rates, references(one));
    this.classes.show(one);
    this.arrivals.show(one);
    this.settings.show(one);
  }

  // What a person can do ----------------------------------------------------------------------------------------

  actions() {
    this.length = el("select", { "aria-label": "For how long" }, SILENCES.map(([text, hours]) => el("option", { value: hours }, text)));
    this.loud = el("span.group", null,
      el("button", { type: "button", onclick: () => this.silence() }, "Silence alerts for"), this.length);
    this.until = el("span.soft");
    this.quiet = el("span.group", { hidden: true }, this.until,
      el("button", { type: "button", onclick: () => this.endSilence() }, "End silence"));
    this.test = el("button", { type: "button", onclick: () => this.testAlert() }, "Send a test alert");
    return el("div.buttons", null, this.loud, this.quiet, this.test);
  }

  async act(what, done, failed) {
    try {
      const answer = await what();
      if (done) this.notice(typeof done === "function" ? done(answer) : done);
      this.look(0);
      return answer;
    } catch (error) {
      this.notice(`${failed}: ${printable(error.message)}`, true);
      return null;
    }
  }

  async silence() {
    const until = new Date(Date.now() + 3.6e6 * Number(this.length.value)).toISOString();
    await this.act(async () => {
      await api.silence(this.monitor, until);
      this.acted++;
      this.one.silenced_until = until;
      this.render();
      this.quiet.querySelector("button").focus();
    }, "Alerts are silenced. Findings still appear here.", "Not silenced");
  }

  async endSilence() {
    await this.act(async () => {
      await api.endSilence(this.monitor);
      this.acted++;
      this.one.silenced_until = null;
      this.render();
      this.loud.querySelector("button").focus();
    }, "Alerts are sent again.", "The silence did not end");
  }

  async testAlert() {
    this.test.disabled = true;
    const answer = await this.act(() => api.testAlert(this.monitor), null, "No test alert was sent");
    if (answer) this.notice(...outcome(answer.channels ?? []));
    this.test.disabled = false;
  }
}

// What became of a test alert, and whether that is bad news.
function outcome(channels) {
  if (!channels.length) return ["This monitor has no channels yet: name some in its settings, under alerts.", true];
  const failed = channels.filter((one) => !one.delivered);
  if (!failed.length) return [`The test alert has arrived at ${several(channels.length, "channel")}.`, false];
  return [failed.map((one) => printable(`Not delivered to ${one.channel}: ${one.problem}`)).join("; "), true];
}
