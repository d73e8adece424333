// Numbers, times and findings as a person would say them; the same words as in the report (report/words.py).

import { printable, shortened } from "./dom.js";

const RATES = {
  tpr: "the share of positives that were found (recall)",
  tnr: "the share of negatives that were left alone",
  ppv: "the share of positive predictions that were right (precision)",
  npv: "the share of negative predictions that were right",
};

export const STATES = { stable: "Stable", warning: "Warning", drifted: "Drifted", waiting: "Waiting" };
// The order in which a person should look at them.
export const URGENCY = ["drifted", "warning", "waiting", "stable"];

export const whole = (x) => (x === null || x === undefined ? "–" : Math.round(x).toLocaleString("en-US"));
export const rate = (x) => (x === null || x === undefined || Number.isNaN(x) ? "–" : x.toFixed(3));
export const percent = (x) => (x >= 0.0995 || x === 0 ? `${Math.round(100 * x)} %` : `${(100 * x).toFixed(x >= 0.00995 ? 1 : 2)} %`);
export const several = (n, noun) => `${whole(n)} ${noun}${n === 1 ? "" : "s"}`;

export function short(name) {
  const at = name.indexOf(":");
  return shortened(at < 0 ? name : `${name.slice(0, at)} of ${name.slice(at + 1)}`);
}

// As the report has them; those of several classes stay as they come.
const ORDER = ["tpr", "tnr", "ppv", "npv"];
export const byOrder = (a, b) => ORDER.indexOf(a) - ORDER.indexOf(b);

export const meaning = (name) => RATES[name] ?? "";

// Times -----------------------------------------------------------------------------------------------------

const two = (x) => String(x).padStart(2, "0");

export const seconds = (iso) => (iso ? Date.parse(iso) / 1000 : null);

// In the time of the reader, and the day only where it is not today.
export function clock(epoch, { exact = false, day = false } = {}) {
  const at = new Date(epoch * 1000);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}${exact ? `:${two(at.getSeconds())}` : ""}`;
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return !day && at.toDateString() === new Date().toDateString() ? time : `${date} ${time}`;
}

export function span(duration) {
  const units = [[86400, "day"], [3600, "h"], [60, "min"]];
  for (const [size, unit] of units) {
    if (duration >= size) {
      const n = Math.floor(duration / size);
      return unit === "day" ? several(n, "day") : `${n} ${unit}`;
    }
  }
  return `${Math.max(0, Math.floor(duration))} s`;
}

export const ago = (epoch) => {
  const passed = Date.now() / 1000 - epoch;
  return passed < 2 ? "now" : `${span(passed)} ago`;
};

// Findings --------------------------------------------------------------------------------------------------

export const segment = (parts) => shortened(Object.entries(parts).map(([name, value]) => `${name} ${value}`).join(", "));

// What became of a drift, after what moved.
const SEQUELS = {
  confirmation: ", confirmed",
  withdrawal: ", so the drift was withdrawn",
  improvement: ", not back at normal",
  acceptance: ", accepted as normal",
};
export const ENDED = ["withdrawal", "acceptance"]; // these tell where a rate is, whatever the alarm said

export function move(change, kind) {
  const { before, after } = change;
  if (kind === "recovery" && after) return `${short(change.rate)} is back at ${rate(after.value)}`;
  if (ENDED.includes(kind) && before && after) return `${short(change.rate)} was ${rate(before.value)}, is ${rate(after.value)}`;
  const verb = change.direction === "down" ? "fell" : "rose";
  return before && after ? `${short(change.rate)} ${verb} from ${rate(before.value)} to ${rate(after.value)}` : `${short(change.rate)} ${verb}`;
}

const TOLD = 2; // rates in a headline

export function moves(finding) {
  if (finding.kind === "shift" || !finding.changes?.length) return printable(finding.text ?? "");
  const told = finding.changes.slice(0, TOLD).map((one) => move(one, finding.kind));
  const left = finding.changes.length - told.length;
  return told.join(" and ") + (left > 0 ? ` and ${several(left, "rate")} more` : "") + (SEQUELS[finding.kind] ?? "");
}

// Where, what and when, in a line.
export function story(finding) {
  const where = finding.segment ? `${segment(finding.segment)}: ` : "";
  const began = seconds(finding.started_time);
  const when = began !== null ? ` around ${clock(began)}` : finding.time ? `, found ${clock(seconds(finding.time))}` : "";
  return `${where}${moves(finding)}${finding.kind === "shift" ? "" : when}`;
}

const OBSERVED = { tpr: " positives", tnr: " negatives" };

// A rate now, with its interval and normal; or which way it moved, and how many observations it still needs.
function rateNow(name, { now, normal, enough }, direction) {
  const expected = normal?.n ? `normal ${rate(normal.value)}` : "";
  if (!now?.n || now.n < enough) {
    const moved = { down: "fell, by how much is", up: "rose, by how much is" }[direction] ?? "is";
    return `${short(name)} ${moved} not yet known: ${whole(now?.n ?? 0)} of about ${whole(enough)}${OBSERVED[name] ?? ""}${expected && ` (${expected})`}`;
  }
  return `${short(name)} ${rate(now.value)} (${rate(now.lower)} to ${rate(now.upper)} of ${whole(now.n)}${expected && `; ${expected}`})`;
}

// An open drift: where, the rates now, since when, and whether the events since bear it out.
export function present(open) {
  const where = open.segment ? `${segment(open.segment)}: ` : "";
  const rates = Object.entries(open.now).sort(([a], [b]) => byOrder(a, b));
  const named = rates.slice(0, TOLD).map(([name, state]) => rateNow(name, state, open.directions[name])).join(" and ");
  const left = rates.length - TOLD;
  const began = seconds(open.started_time);
  const when = began !== null ? `, since about ${clock(began)}` : `, found ${clock(seconds(open.time))}`;
  return `${where}${named}${left > 0 ? ` and ${several(left, "rate")} more` : ""}${when} (${open.confirmed ? "confirmed" : "not yet confirmed"})`;
}

// What to say of a monitor that drifted: the whole before its segments, which often moved with it.
export function cause(one) {
  return one.drift ?? (["drift", "confirmation"].includes(one.last_finding?.kind) ? one.last_finding : null);
}

// A monitor after something was found in it, or somebody acknowledged what was found before.
export function withFinding(one, finding) {
  const last = one.last_finding;
  const latest = !last || last.id === finding.id || seconds(finding.time) >= seconds(last.time);
  const whole = finding.kind === "drift" && !finding.segment && (one.drift?.id === finding.id || latest);
  return { ...one, ...(latest ? { last_finding: finding } : {}), ...(whole ? { drift: finding } : {}) };
}

// What to do about an open drift.
export function advice(one) {
  const why = cause(one);
  const began = seconds(why?.started_time) ?? seconds(one.since);
  const look = `What to do: look for what changed in the data or the model${began === null ? "" : ` around ${clock(began)}`}; retrain on the examples of the drift below`;
  const seen = why?.acknowledged ? "It was acknowledged" : "Acknowledge it to stop reminders";
  const then = one.config?.reference && !why?.segment ? "; it stays open until the rates are back at the reference." : "; what is now is then the new normal.";
  return `${look}. ${seen}${then}`;
}

// How a monitor stands: a word, and what there is to say about it.
export function headline(one) {
  const last = one.last_finding;
  const why = cause(one);
  if (one.status === "drifted" && one.open?.length) return ["Drifted", present(one.open[0])];
  if (one.status === "drifted" && why) return ["Drifted", story(why)];
  if (one.status === "drifted") {
    const which = one.drifted_segments ? `${whole(one.drifted_segments)} of ${several(one.segments, "segment")}` : "";
    return ["Drifted", [which, one.since ? `since ${clock(seconds(one.since))}` : ""].filter(Boolean).join(", ")];
  }
  if (one.status === "warning") return ["Warning", `${percent(one.evidence)} of the evidence that an alarm takes`];
  if (one.status === "waiting") return ["Waiting", one.waiting ? "predictions are here, their labels are not" : "for its first events"];
  if (one.drifted_segments) return ["Stable", `as a whole, but ${several(one.drifted_segments, "segment")} drifted`];
  if (last?.kind === "recovery" && !last.segment) return ["Recovered", story(last)];
  if (last?.kind === "withdrawal" && !last.segment) return ["Stable", "after a drift that was withdrawn: the events since the alarm do not bear it out"];
  return ["Stable", one.since ? `since ${clock(seconds(one.since))}` : ""];
}

// Scatter ---------------------------------------------------------------------------------------------------

export function scatter(factor) {
  if (factor === null || factor === undefined) return "not known yet";
  if (factor < 1.15) return "as independent errors do";
  const times = factor < 9.95 ? factor.toFixed(1) : whole(factor);
  const words = factor < 2 ? "a little more" : factor < 5 ? "clearly more" : "far more";
  return `${words} than independent errors do: ${times} times`;
}
