// More about a monitor, such as class mix, error clustering, ingestion and settings.

import * as api from "./api.js";
import { el, printable, replace, say, section, shortened } from "./dom.js";
import { matrix } from "./matrix.js";
import { byOrder, clustering, percent, rate, short, whole } from "./words.js";

const LISTED = 12;

// Classes -----------------------------------------------------------------------------------------------------

export class Classes {
  constructor() {
    this.mix = el("dl.mix");
    this.shift = el("p");
    this.counts = el("div.matrices");
    this.clustering = el("dl.scatter");
    this.node = el("div.pair", null,
      section("Class mix", this.mix, this.shift),
      section("Error clustering", el("p.soft", null, "Errors in runs carry less information than scattered ones; the alarm level accounts for it."), this.clustering),
      section("Confusion matrix", this.counts));
  }

  show(one) {
    const shares = Object.entries(one.mix);
    const most = Math.max(...shares.map(([, share]) => share), 0.01);
    const bar = (share) => {
      const fill = el("i");
      fill.style.width = `${(100 * share) / most}%`;
      return el("div.meter.share", { "aria-hidden": "true" }, fill);
    };
    replace(this.mix, shares.slice(0, LISTED).map(([label, share]) => [el("dt.name", null, shortened(label, 40)), el("dd", null, bar(share), el("span.num", null, percent(share)))]),
      shares.length > LISTED && [el("dt.soft", null, "others"), el("dd.soft", null, `${whole(shares.length - LISTED)} more`)]);
    if (!shares.length) replace(this.mix, el("dt.soft", null, "Not known yet."));
    const { shift } = one;
    const moved = shift && `Shifted: positives went from ${percent(shift.before.value)} to ${percent(shift.after.value)}. The classifier has not drifted, though its precisions move.`;
    say(this.shift, moved ?? (shares.length ? "No class-mix shift." : ""));
    replace(this.clustering, Object.entries(one.rates).sort(([a], [b]) => byOrder(a, b)).filter(([, state]) => state.dispersion !== null).slice(0, LISTED)
      .map(([name, state]) => [el("dt", null, short(name)), el("dd", null, clustering(state.dispersion, one.status === "drifted"))]));
    const counted = one.confusion.flat().some((count) => count > 0);
    replace(this.counts, counted ? matrix("All events so far", one.confusion, one.labels) : el("p.soft", null, "None yet."));
  }
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

export class Arrivals {
  constructor(monitor, notice) {
    this.monitor = monitor;
    this.notice = notice;
    this.body = el("tbody");
    this.rows = el("div");
    this.button = el("button", { type: "button", hidden: true, onclick: () => this.list() }, "Show rejected rows");
    this.node = section("Ingestion", el("table.settings", null, this.body), el("p", null, this.button), this.rows);
  }

  show(one) {
    const counts = Object.entries(one.counts).filter(([, count]) => count);
    this.node.hidden = counts.length === 0; // pairs without ids; there is nothing to join
    replace(this.body, counts.map(([name, count]) => {
      const [title, why] = COUNTS[name] ?? [printable(name).replaceAll("_", " "), ""];
      return el("tr", null, el("th", { scope: "row" }, title), el("td", null, el(LOSSES.has(name) && count ? "b.num.caution" : "b.num", null, whole(count)), " ", el("span.soft", null, why)));
    }));
    this.button.hidden = !one.counts.rejected;
  }

  async list() {
    try {
      const { rejected } = await api.rejected(this.monitor);
      replace(this.rows, el("ul.rejected", null, rejected.map((row) => el("li", null, shortened(JSON.stringify(row), 300)))));
    } catch (error) {
      this.notice(`The rows could not be loaded: ${error.message}`, true);
    }
  }
}

// Settings ----------------------------------------------------------------------------------------------------

const MIX = { report: "reported, no alarm", alarm: "an alarm", ignore: "ignored" };

export class Settings {
  constructor() {
    this.body = el("tbody");
    this.node = el("details.fold", null, el("summary", null, "Settings"), el("table.settings", null, this.body));
  }

  show(one) {
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
    replace(this.body, rows.filter(([, value]) => value !== null)
      .map(([name, value]) => el("tr", null, el("th", { scope: "row" }, name), el("td", null, printable(value)))));
  }
}
