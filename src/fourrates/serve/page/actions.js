// The actions on a monitor or a segment, each a button, most with a short dialog.

import * as api from "./api.js";
import { ask, el, printable } from "./dom.js";
import { clock, seconds, segment, several } from "./words.js";

const LENGTHS = [["1 hour", 1], ["8 hours", 8], ["1 day", 24], ["1 week", 168]];
const WHO = "fourrates-who"; // whoever acknowledges gives the name once

const who = () => ({ label: "Who", node: el("input", { autocomplete: "name", value: localStorage.getItem(WHO) ?? "" }) });
const why = (hint) => ({ label: "Why (optional)", node: el("input", { placeholder: hint, maxlength: 2000 }) });

export class Actions {
  // `view` has the monitor's name, its segment or null, its state and its `looks`; `notice` shows a message.
  constructor(view, notice) {
    Object.assign(this, { view, notice, busy: false });
  }

  // `drift` is the open one that the headline is about, or null; `seen` says whether somebody acknowledged it.
  buttons({ silenced_until: until }, drift, seen) {
    const silenced = seconds(until) > Date.now() / 1000;
    const button = (text, act, id = text) => el("button", { type: "button", "data-id": id, onclick: () => this.alone(act) }, text);
    const notes = [seen, silenced && `Alerts silenced until ${clock(seconds(until))}`];
    return el("div.buttons", { role: "group", "aria-label": "Actions" },
      drift && !seen && button("Acknowledge", () => this.see(drift)),
      drift && button("Accept as normal", () => this.see(drift, true)),
      drift && button("Download training IDs", () => this.ids(drift)),
      silenced ? button("End silence", () => this.endSilence(), "silence") : button("Silence alerts", () => this.silence(), "silence"),
      this.view.segment === null && [button("New reference", () => this.newReference()), button("Send test alert", () => this.testAlert())],
      el("span.soft", null, notes.filter(Boolean).join(" · ")));
  }

  // One action at a time.
  async alone(act) {
    if (this.busy) return;
    this.busy = true;
    try { await act(); } finally { this.busy = false; }
  }

  async act(what, done, failed) {
    try {
      const answer = await what();
      if (done) {
        this.notice(done);
        await this.view.looks.again();
      }
      return answer ?? true;
    } catch (error) {
      this.notice(`${failed}: ${printable(error.message)}`, true);
      return null;
    }
  }

  async see(drift, accept = false) {
    const where = drift.segment ? ` in ${segment(drift.segment)}` : "";
    const given = accept
      ? await ask("Accept as normal", `The level since the alarm${where} becomes normal, and the drift closes. Do this after a new model was deployed, or if the change is wanted.`, [who(), why("new model 2.4 deployed")], "Accept")
      : await ask("Acknowledge", `Reminders about the drift${where} stop. It stays open until the rates are back, it is withdrawn, or somebody accepts it as normal.`, [who(), why("looking into it")], "Acknowledge");
    if (!given) return;
    localStorage.setItem(WHO, given[0]);
    const body = { by: given[0] || null, note: given[1] || null };
    const send = accept ? api.accept : api.acknowledge;
    await this.act(() => send(this.view.monitor, drift.id, body), accept ? "Accepted as normal." : "Acknowledged.", accept ? "Not accepted" : "Not acknowledged");
  }

  // The ids of the events since a drift started, to retrain on.
  async ids(drift) {
    const ids = await this.act(() => api.examples(this.view.monitor, drift.id), null, "The ids could not be loaded");
    if (!ids) return;
    if (!ids.length) { this.notice("No ids were sent with these events."); return; }
    const href = URL.createObjectURL(new Blob([ids.map((id) => `${id}\n`)], { type: "text/plain" }));
    el("a", { href, download: `drift-${drift.id}-ids.txt` }).click();
    this.notice(`${several(ids.length, "id")} since the drift started.`);
  }

  async silence() {
    const length = el("select", null, LENGTHS.map(([text, hours]) => el("option", { value: hours }, text)));
    const of = this.view.segment ? segment(this.view.segment) : "this monitor";
    const given = await ask("Silence alerts", `No alerts about ${of} for a while. Findings still appear here.`, [{ label: "For", node: length }], "Silence");
    if (!given) return;
    const until = new Date(Date.now() + 3.6e6 * Number(given[0])).toISOString();
    await this.act(() => api.silence(this.view.monitor, until, this.view.segment), "Alerts are silenced.", "Not silenced");
  }

  async endSilence() {
    await this.act(() => api.endSilence(this.view.monitor, this.view.segment), "Alerts are sent again.", "The silence did not end");
  }

  async newReference() {
    const counts = el("textarea", { rows: 3, spellcheck: "false", required: true }, JSON.stringify(this.view.one.config.reference ?? this.view.one.confusion));
    const given = await ask("New reference", "Counts of the validation data as JSON: a row for each true class, a column for each predicted one. The comparison restarts and open drifts close.", [{ label: "Counts", node: counts }], "Set reference");
    if (given) await this.act(() => api.patch(this.view.monitor, { reference: JSON.parse(given[0]) }), "The reference is set.", "Not set");
  }

  async testAlert() {
    const answer = await this.act(() => api.testAlert(this.view.monitor), null, "No test alert was sent");
    if (!answer) return;
    const failed = answer.channels.filter((one) => !one.delivered);
    if (!answer.channels.length) this.notice("This monitor has no channels yet. Add some to its settings, under alerts.", true);
    else if (!failed.length) this.notice(`The test alert arrived at ${several(answer.channels.length, "channel")}.`);
    else this.notice(failed.map((one) => printable(`Not delivered to ${one.channel}: ${one.problem}`)).join("; "), true);
  }
}

export function acknowledged({ acknowledged: time, acknowledged_by: by, note }) {
  return `Acknowledged ${clock(seconds(time))}${by ? ` by ${printable(by)}` : ""}${note ? `: ${printable(note)}` : ""}`;
}
