// More about a monitor, such as class mix, error clustering, ingestion and settings.

import { el, printable, section, shortened } from "./dom.js";
import { matrix } from "./matrix.js";
import { byOrder, clock, clustering, percent, rate, short, whole } from "./words.js";

const LISTED = 12;

// Classes -----------------------------------------------------------------------------------------------------

export function classes(one) {
  const shares = Object.entries(one.mix);
  const most = Math.max(...shares.map(([, share]) => share), 0.01);
  const bar = (share) => {
    const fill = el("i");
    fill.style.width = `${(100 * share) / most}%`;
    return el("div.meter.share", { "aria-hidden": "true" }, fill);
  };
  const mix = shares.slice(0, LISTED).map(([label, share]) => [el("dt.name", null, shortened(label, 40)), el("dd", null, bar(share), el("span.num", null, percent(share)))]);
  const others = shares.length > LISTED && [el("dt.soft", null, "others"), el("dd.soft", null, `${whole(shares.length - LISTED)} more`)];
  const { shift } = one;
  const moved = shift && `Shifted ${clock(shift.time)}: positives went from ${percent(shift.before.value)} to ${percent(shift.after.value)}. The classifier has not drifted, though its precisions move.`;
  const clustered = Object.entries(one.rates).filter(([, state]) => state.dispersion !== null).sort(([a], [b]) => byOrder(a, b)).slice(0, LISTED);
  const counted = one.confusion.flat().some((count) => count > 0);
  return el("div.pair", null,
    section("Class mix", el("dl.mix", null, shares.length ? [mix, others] : el("dt.soft", null, "Not known yet.")), el("p", null, moved ?? (shares.length ? "No class-mix shift." : ""))),
    section("Error clustering", el("p.soft", null, "Errors in runs carry less information than scattered ones; the alarm level accounts for it."),
      el("dl.scatter", null, clustered.map(([name, state]) => [el("dt", null, short(name)), el("dd", null, clustering(state.dispersion, one.status === "drifted"))]))),
    section("Confusion matrix", el("div.matrices", null, counted ? matrix("All events so far", one.confusion, one.labels) : el("p.soft", null, "None yet."))));
}

// Ingestion -----------------------------------------------------------------------------------------------------

const COUNTS = {
  pairs: ["Pairs", "a prediction and its label"],
  waiting: ["Awaiting labels", "predictions without a label yet"],
  to_label: ["To label", "drawn by the label plan, no label yet: GET /api/monitors/NAME/to-label"],
  waiting_labels: ["Awaiting predictions", "labels without a prediction yet"],
  expired: ["Expired", "predictions whose label was too late or never arrived"],
  displaced: ["Displaced", "predictions dropped because too many waited"],
  late_labels: ["Late labels", "arrived after their prediction had expired"],
  unmatched: ["Unmatched labels", "never had a prediction. Are the ids the same on both sides?"],
  repeated_predictions: ["Repeated predictions", "ids sent again, counted once"],
  repeated_labels: ["Repeated labels", "ids sent again, counted once"],
  rejected: ["Rejected rows", "could not be used"],
};
const LOSSES = new Set(["expired", "displaced", "late_labels", "unmatched", "rejected"]);

// `list()` fetches the rejected rows; `rejected` has them, or null.
export function arrivals(one, rejected, list) {
  const counts = Object.entries(one.counts).filter(([, count]) => count);
  if (!counts.length) return null; // pairs without ids; there is nothing to join
  const row = ([name, count]) => {
    const [title, why] = COUNTS[name] ?? [printable(name).replaceAll("_", " "), ""];
    return el("tr", null, el("th", { scope: "row" }, title), el("td", null, el(LOSSES.has(name) ? "b.num.caution" : "b.num", null, whole(count)), " ", el("span.soft", null, why)));
  };
  return section("Ingestion", el("table.settings", null, el("tbody", null, counts.map(row))),
    el("p", null, one.counts.rejected > 0 && el("button", { type: "button", onclick: list }, "Show rejected rows")),
    rejected && el("ul.rejected", null, rejected.map((line) => el("li", null, shortened(JSON.stringify(line), 300)))));
}

// Settings ----------------------------------------------------------------------------------------------------

const MIX = { report: "reported, no alarm", alarm: "an alarm", ignore: "ignored" };

export function settings(one) {
  const { config, config: { alerts } } = one;
  const labels = one.labels.map((label) => shortened(label, 40));
  const classes = labels.slice(0, LISTED).join(", ") + (labels.length > LISTED ? ` and ${labels.length - LISTED} more` : "");
  const total = config.reference?.flat().reduce((a, b) => a + b, 0);
  const right = config.reference?.reduce((sum, row, i) => sum + row[i], 0);
  const rows = [
    ["False-alarm budget", `${config.budget ? `${config.budget}: ` : ""}one in ${whole(one.arl)} events while nothing changes, on average`],
    ["Classes", labels.length > 2 ? classes : `${classes}; ${shortened(config.positive ?? labels.at(-1), 40)} is positive`],
    ["Normal", total ? `a reference of ${whole(total)} events, ${(100 * right / total).toFixed(1)} % correct` : "the baseline it has learned"],
    ["A drift stays open", "until it is withdrawn, the rates are back at normal, or somebody accepts the new level"],
    ["Segments by", config.by.length ? config.by.map((name) => shortened(name, 40)).join(", ") : "none"],
    ["Labels may take", config.max_wait],
    ["A class-mix shift is", MIX[config.mix]],
    ["Score threshold", config.threshold],
    ["Alerts go to", alerts.channels.length ? alerts.channels.map((address) => shortened(address, 60)).join(", ") : "nowhere: this page only"],
    ["Warnings", alerts.warnings ? "sent as alerts" : "shown here only"],
    ["Alert if no events for", alerts.silent_after],
    ["Alert if labels are overdue by", alerts.labels_overdue],
  ];
  const shown = rows.filter(([, value]) => value !== null).map(([name, value]) => el("tr", null, el("th", { scope: "row" }, name), el("td", null, printable(value))));
  return el("details.fold", null, el("summary", null, "Settings"), el("table.settings", null, el("tbody", null, shown)));
}
