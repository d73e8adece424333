// Confusion counts as a table of true classes by predicted ones, each row in shares, errors shaded.

import { el, printable } from "./dom.js";
import { percent, rate, whole } from "./words.js";

const DRAWN = 12; // classes; of more only the accuracy is shown

const sum = (list) => list.reduce((a, b) => a + b, 0);

// tpr, tnr, ppv and npv of two classes, and the accuracy of any number. Of two the positive one is the second.
function figures(counts) {
  const share = (a, b) => (b ? rate(a / b) : "–");
  const accuracy = [["accuracy", share(sum(counts.map((row, i) => row[i])), sum(counts.flat()))]];
  if (counts.length !== 2) return accuracy;
  const [[tn, fp], [fn, tp]] = counts;
  return [["tpr", share(tp, tp + fn)], ["tnr", share(tn, tn + fp)], ["ppv", share(tp, tp + fp)], ["npv", share(tn, tn + fn)], ...accuracy];
}

// Counts and labels in the order of the server.
export function matrix(caption, counts, labels) {
  const total = sum(counts.flat());
  const names = labels.map(printable);
  const rates = el("ul.rates", null, figures(counts).map(([name, value]) => el("li", null, `${name} `, el("b", null, value))));
  const head = el("p.caption", null, `${caption}, ${whole(total)} events, % of each true class`);
  if (counts.length > DRAWN) return el("div", null, head, rates);
  const cell = (count, row, right) => {
    const share = count / Math.max(sum(row), 1);
    return el(right ? "td.right" : `td.down${Math.min(4, Math.ceil(10 * share))}`, { title: whole(count) }, sum(row) ? percent(share).replace(" %", "") : "–");
  };
  const table = el("table.matrix", null,
    el("thead", null,
      el("tr", null, el("td"), el("th.axis", { scope: "colgroup", colspan: labels.length }, "predicted")),
      el("tr", null, el("th.axis", { scope: "col" }, "true"), names.map((name) => el("th", { scope: "col", title: name }, name)))),
    el("tbody", null, counts.map((row, i) => el("tr", null,
      el("th", { scope: "row", title: names[i] }, names[i]), row.map((count, j) => cell(count, row, i === j))))));
  return el("div", null, head, el("div.scroll", counts.length > 4 ? { tabindex: 0, role: "region", "aria-label": `${caption}: confusion matrix` } : null, table), rates);
}
