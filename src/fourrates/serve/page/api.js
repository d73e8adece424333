// Requests to the server, and its stream of events.
//
// A token may only travel in a header, which an EventSource cannot send, so the stream is read with fetch.

import { ask, el } from "./dom.js";

const KEPT = "fourrates-token";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let asking = null;

export const hasToken = () => sessionStorage.getItem(KEPT) !== null;
export const forgetToken = () => sessionStorage.removeItem(KEPT);

// One dialog, however many requests were turned away at once; without a token there is nothing to see.
function askForToken(refused) {
  const why = refused ? "The server did not accept that token. It may have been revoked, or a character is missing. "
    : ["Create one with ", el("code", null, "fourrates token create NAME --scope read"), ", or ask whoever runs the server. "];
  const field = () => ({ label: "Token", node: el("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true }) });
  const given = () => ask("This server needs a token", [why, "It is kept until this tab is closed, and sent to this server only."], [field()], "Continue", null);
  const keep = (answer) => {
    if (!answer?.[0]) return given().then(keep);
    sessionStorage.setItem(KEPT, answer[0]);
    asking = null;
    return null;
  };
  return (asking ??= given().then(keep));
}

async function send(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEPT);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(path, { ...options, headers, cache: "no-store", redirect: "error" });
    if (answer.status !== 401) return answer;
    await answer.body?.cancel();
    await askForToken(token !== null && token === sessionStorage.getItem(KEPT));
  }
}

async function json(path, options) {
  const answer = await send(path, options);
  const text = await answer.text();
  let body = null;
  try { body = text ? JSON.parse(text) : null; } catch { /* reported below, by its status */ }
  if (answer.ok) return body;
  const error = body?.error ?? {};
  throw new Refused(answer.status, error.code, error.message ?? `the server answered ${answer.status}`);
}

const of = (name, rest = "") => `api/monitors/${encodeURIComponent(name)}${rest}`;

const query = (fields) => {
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return given.length ? `?${given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}` : "";
};
const sent = (method, body) => ({ method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
const listed = (parts) => (parts ? JSON.stringify(Array.isArray(parts) ? parts : Object.values(parts)) : null); // a segment, by its values

export const monitors = () => json("api/monitors").then((body) => body.monitors);
export const monitor = (name) => json(of(name));
export const patch = (name, change) => json(of(name), sent("PATCH", change));
export const series = (name, points, seconds) => json(of(name, `/series${query({ points, seconds })}`));
export const segments = (name, { limit, offset, segment }) => json(of(name, `/segments${query({ limit, offset, segment: listed(segment) })}`));
export const segmentSeries = (name, segment) => json(of(name, `/segments/series${query({ segment: listed(segment) })}`));
export const rejected = (name) => json(of(name, "/rejected"));
export const examples = (name, id) => json(of(name, `/drifts/${encodeURIComponent(id)}/examples`)).then((body) => body.ids);
export const acknowledge = (name, id, who) => json(of(name, `/drifts/${encodeURIComponent(id)}/acknowledge`), sent("POST", who));
export const accept = (name, id, who) => json(of(name, `/drifts/${encodeURIComponent(id)}/accept`), sent("POST", who));
export const testAlert = (name) => json(of(name, "/test-alert"), { method: "POST" });
export const silence = (name, until, segment) => json(of(name, "/silence"), sent("PUT", { until, segment }));
export const endSilence = (name, segment) => json(of(name, `/silence${query({ segment: listed(segment) })}`), { method: "DELETE" });

// Newest first, either all, only overall, or those of a segment.
export function findings(name, limit, { segment, overall, before } = {}) {
  return json(of(name, `/drifts${query({ limit, before, of: overall ? "overall" : null, segment: listed(segment) })}`)).then((body) => body.drifts);
}

// The stream ------------------------------------------------------------------------------------------------

const SILENT = 40_000; // ms without a byte; the server sends a heartbeat every 2 s
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

// News of one monitor, or of all; reconnects for as long as it is open. `listener` has
//   connected()  the stream is up; something may have been missed
//   lost()       it is not
//   changed()    there is something new to fetch
export class Feed {
  constructor(monitor, listener) {
    this.path = monitor === null ? "api/stream" : `api/stream?monitor=${encodeURIComponent(monitor)}`;
    this.listener = listener;
    this.wait = FIRST_WAIT;
    this.open = true;
    this.awake = () => {};
    this.run();
  }

  close() {
    this.open = false;
    this.request?.abort();
    this.awake();
  }

  // Do not wait for the next attempt.
  hurry() {
    this.wait = FIRST_WAIT;
    this.awake();
  }

  async run() {
    while (this.open) {
      this.request = new AbortController();
      let gone = false;
      try {
        await this.read();
      } catch (error) { // away, ended, silent or refused; all of them mean to try again
        gone = error.status === 404;
      }
      clearTimeout(this.watchdog);
      if (!this.open) return;
      const wait = this.wait * (0.75 + Math.random() / 2);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
      if (!gone) this.listener.lost();
      await new Promise((resolve) => {
        this.awake = resolve;
        setTimeout(resolve, wait);
      });
    }
  }

  heard() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.request.abort(), SILENT);
  }

  async read() {
    this.heard();
    const answer = await send(this.path, { headers: { Accept: "text/event-stream" }, signal: this.request.signal });
    this.wait = answer.ok ? FIRST_WAIT : LONGEST_WAIT;
    if (answer.ok || answer.status === 404) this.listener.connected(); // deleted, or never there, as the view shows
    if (!answer.ok) throw new Refused(answer.status);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      this.heard();
      if (/^(event|data):/m.test(value)) this.listener.changed(); // however an event is cut into pieces
    }
  }
}
