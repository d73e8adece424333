// Numbers, times and states as a person would put them.

import { shortened } from "./dom.js";

const MEANINGS = {
  tpr: "positives caught (recall)",
  tnr: "negatives correctly passed",
  ppv: "positive predictions that were right (precision)",
  npv: "negative predictions that were right",
};
const OBSERVED = { tpr: "positives", tnr: "negatives", ppv: "positive predictions", npv: "negative predictions" };

export const STATES = { stable: "Stable", warning: "Warning", drifted: "Drifted", waiting: "Waiting" };
// The order in which a person should look at them.
export const URGENCY = ["drifted", "warning", "waiting", "stable"];

export const known = (x) => x !== null && x !== undefined && !Number.isNaN(x);
export const whole = (x) => (known(x) ? Math.round(x).toLocaleString("en-US") : "–");
export const rate = (x) => (known(x) ? x.toFixed(3) : "–");
export const percent = (x) => (x >= 0.0995 || x === 0 ? `${Math.round(100 * x)} %` : `${(100 * x).toFixed(x >= 0.00995 ? 1 : 2)} %`);
export const several = (n, noun) => `${whole(n)} ${noun}${n === 1 ? "" : "s"}`;
const listed = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);

const labelOf = (name) => (name.includes(":") ? name.slice(name.indexOf(":") + 1) : null);

export function short(name) {
  const label = labelOf(name);
  return shortened(label === null ? name : `${name.slice(0, name.indexOf(":"))} of ${label}`);
}

// As in the report; those of several classes keep their order, recalls first.
const ORDER = ["tpr", "tnr", "ppv", "npv"];
export const byOrder = (a, b) => ORDER.indexOf(a) - ORDER.indexOf(b);
export const isRecall = (name) => name === "tpr" || name === "tnr" || name.startsWith("recall:");

export function meaning(name) {
  const label = labelOf(name);
  if (label === null) return MEANINGS[name] ?? "";
  return name.startsWith("recall:") ? `${shortened(label, 40)} recognised` : `predictions of ${shortened(label, 40)} that were right`;
}

// Times -----------------------------------------------------------------------------------------------------

const two = (x) => String(x).padStart(2, "0");

export const seconds = (iso) => (iso ? Date.parse(iso) / 1000 : null);

// In the time of the reader, with the day unless it is today.
export function clock(epoch, { exact = false, day = false } = {}) {
  const at = new Date(epoch * 1000);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}${exact ? `:${two(at.getSeconds())}` : ""}`;
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return !day && at.toDateString() === new Date().toDateString() ? time : `${date} ${time}`;
}

export function span(duration) {
  for (const [size, unit] of [[86400, "day"], [3600, "h"], [60, "min"]]) {
    const n = Math.floor(duration / size);
    if (n) return unit === "day" ? several(n, "day") : `${n} ${unit}`;
  }
  return `${Math.max(0, Math.floor(duration))} s`;
}

export const delay = (duration) => (duration < 1 ? "under 1 s" : span(duration));
export const ago = (epoch) => (Date.now() / 1000 - epoch < 2 ? "just now" : `${span(Date.now() / 1000 - epoch)} ago`);

// How things are ----------------------------------------------------------------------------------------------

// "country FR", but "shop 7" instead of "shop shop 7".
const named = ([name, value]) => (String(value).toLowerCase().startsWith(name.toLowerCase()) ? String(value) : `${name} ${value}`);
export const segment = (parts) => shortened(Object.entries(parts).map(named).join(", "));
// Where on this page a monitor is, or one of its segments.
export const address = (name, parts) => `#/monitor/${encodeURIComponent(name)}${parts ? `/segment/${encodeURIComponent(JSON.stringify(Object.values(parts)))}` : ""}`;
export const sameSegment = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

const isKnown = ({ now, enough }) => now?.n > 0 && now.n >= enough;

// How many more observations a rate needs before it is worth quoting.
export function needs(name, { now, enough }) {
  const label = labelOf(name);
  const left = Math.max(enough - (now?.n ?? 0), 1);
  return `${whole(left)} more ${label === null ? OBSERVED[name] ?? "events" : `of class ${shortened(label, 40)}`}`;
}

// The interval of a rate that is not known yet but moved; none for few observations.
const QUOTED = 15;
export const interval = ({ now }) => (now?.n >= QUOTED ? `${rate(now.lower)} to ${rate(now.upper)}` : null);

// A rate now against normal; before it is known, its direction and interval.
export function level(name, state, direction) {
  const normal = state.normal?.n ? rate(state.normal.value) : "";
  if (isKnown(state)) return `${short(name)} ${rate(state.now.value)}${normal && `, normally ${normal}`}`;
  const moved = `${short(name)} ${{ down: "fell", up: "rose" }[direction] ?? "moved"}${normal && ` from ${normal}`}`;
  const between = interval(state);
  return between ? `${moved} to between ${between.replace(" to ", " and ")}` : `${moved}; needs ${needs(name, state)} to say how far`;
}

// The open drift to name first, of the rate the server calls the worst.
export const culprit = (one) => one.open?.find((open) => sameSegment(open.segment, one.worst?.segment)) ?? one.open?.[0] ?? null;
export const harm = (one) => (one.open?.[0]?.segment === null ? one.open[0].harm : (one.open ?? []).reduce((sum, open) => sum + open.harm, 0));
export const isYoung = (one) => one.status === "stable" && one.worst !== null && !isKnown(one.worst);

// A word for the state, with the culprit and its rate now and normally.
export function verdict(one) {
  const { worst, status } = one;
  if (status === "drifted") {
    const open = culprit(one);
    const where = worst?.segment ?? open?.segment;
    return [`Drifted${where ? ` in ${segment(where)}` : ""}`, worst ? level(worst.rate, worst, open?.directions[worst.rate]) : ""];
  }
  if (status === "warning") return ["Warning", `a rate may be moving; alarm level ${percent(one.evidence)}`];
  if (status === "waiting") return one.waiting ? ["Waiting for labels", `${several(one.waiting, "prediction")} so far`] : ["Waiting", "for the first events"];
  if (isYoung(one)) {
    const lacking = one.rates ? Object.entries(one.rates).filter(([name, state]) => isRecall(name) && !isKnown(state)).sort(([a], [b]) => byOrder(a, b)).slice(0, 3) : [[worst.rate, worst]];
    return ["Too early to say", `needs ${listed(lacking.map(([name, state]) => needs(name, state)))}`];
  }
  return [recovered(one) ? "Recovered" : "Stable", worst ? level(worst.rate, worst) : ""];
}

// Within the day a drift of the same stream closed because the rates returned.
function recovered({ last_finding: last, segment: of }) {
  return last?.kind === "recovery" && last.closes && sameSegment(last.segment, of) && Date.now() / 1000 - seconds(last.time) < 86400;
}

// The rest of the story, in short phrases.
export function story(one) {
  const open = culprit(one);
  const phrases = [];
  if (one.status === "drifted" && open) {
    const began = seconds(open.started_time);
    phrases.push(`${began === null ? "" : `since about ${clock(began)}, `}found ${clock(seconds(open.time))}`, open.confirmed ? "confirmed" : "not yet confirmed");
    const overall = open.segment && one.open.find((other) => other.segment === null);
    if (overall?.now[one.worst.rate]) phrases.push(`overall ${level(one.worst.rate, overall.now[one.worst.rate], overall.directions[one.worst.rate])}`);
    const others = Object.keys(open.now).filter((name) => name !== one.worst.rate);
    if (open.cost) phrases.push(open.cost.text);
    if (others.length) phrases.push(level(others[0], open.now[others[0]], open.directions[others[0]]) + (others.length > 1 ? ` and ${several(others.length - 1, "rate")} more` : ""));
  }
  if (one.drifted_segments) phrases.push(`${whole(one.drifted_segments)} of ${several(one.segments, "segment")} drifted`);
  const last = one.last_finding;
  if (one.status === "stable" && last?.closes && sameSegment(last.segment, one.segment)) {
    phrases.push(last.kind === "withdrawal" ? `a drift was withdrawn ${clock(seconds(last.time))}, because the events since the alarm do not support it`
      : last.kind === "acceptance" ? `a new level was accepted as normal ${clock(seconds(last.time))}` : `a drift closed ${clock(seconds(last.time))}`);
  }
  return phrases;
}

// Findings --------------------------------------------------------------------------------------------------

export const KINDS = {
  drift: "Drift", confirmation: "Drift confirmed", withdrawal: "Drift withdrawn", recovery: "Recovery",
  improvement: "Improvement", acceptance: "Accepted as normal", shift: "Class-mix shift",
  prediction_shift: "Prediction shift",
};
export const ENDED = ["withdrawal", "acceptance"]; // these show the place of a rate, whatever the alarm was

export function moves(finding) {
  const shares = () => `positives ${percent(finding.before.value)} → ${percent(finding.after.value)}`;
  if (finding.kind === "shift") return shares();
  if (finding.kind === "prediction_shift") return `predicted ${shares()}${finding.wait ? `; labels take about ${finding.wait}` : ""}`;
  const phrases = finding.changes.slice(0, 2).map(({ rate: name, direction, before, after }) => {
    if (!before || !after) return `${short(name)} ${direction === "down" ? "fell" : "rose"}`;
    if (ENDED.includes(finding.kind)) return `${short(name)} ${rate(after.value)}, was ${rate(before.value)}`;
    return `${short(name)} ${rate(before.value)} → ${rate(after.value)}`;
  });
  const left = finding.changes.length - phrases.length;
  return phrases.join("; ") + (left > 0 ? ` and ${several(left, "rate")} more` : "");
}

export function clustering(factor, drifted) {
  if (!known(factor)) return "not known yet";
  if (factor < 1.15) return "none";
  const times = factor < 9.95 ? factor.toFixed(1) : whole(factor);
  return `${factor < 2 ? "slight" : factor < 5 ? "clear" : "strong"}: errors vary ${times} times as much as independent ones${drifted ? ", perhaps because of the drift" : ""}`;
}
