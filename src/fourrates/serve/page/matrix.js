// Confusion counts as a table: rows are what was true, columns what was predicted; errors shaded by their share of the row.

import { el, printable } from "./dom.js";
import { rate, whole } from "./words.js";

const DRAWN = 12; // classes; of more only what was right is told

const sum = (list) => list.reduce((a, b) => a + b, 0);

// tpr, tnr, ppv and npv of two classes, and the accuracy of any number. Of two the positive one is the second.
function figures(counts) {
  const total = sum(counts.flat());
  const right = sum(counts.map((row, i) => row[i]));
  const share = (a, b) => (b ? rate(a / b) : "–");
  const told = [["accuracy", share(right, total)]];
  if (counts.length !== 2) return told;
  const [n, p] = [0, 1];
  return [
    ["tpr", share(counts[p][p], sum(counts[p]))],
    ["tnr", share(counts[n][n], sum(counts[n]))],
    ["ppv", share(counts[p][p], counts[p][p] + counts[n][p])],
    ["npv", share(counts[n][n], counts[n][n] + counts[p][n])],
    ...told,
  ];
}

// Counts and labels in the order of the server.
export function matrix(caption, counts, labels) {
  const total = sum(counts.flat());
  const names = labels.map(printable);
  const rates = el("ul.rates", null, figures(counts).map(([name, value]) => el("li", null, `${name} `, el("b", null, value))));
  if (counts.length > DRAWN) {
    const right = sum(counts.map((row, i) => row[i]));
    return el("div", null, el("p.caption", null, caption), el("p", null, `${whole(right)} of ${whole(total)} right`), rates);
  }
  const shade = (count, row) => Math.min(10, Math.ceil((10 * count) / Math.max(sum(row), 1)));
  const head = el("thead", null,
    el("tr", null, el("td"), el("th.axis", { scope: "colgroup", colspan: labels.length }, "predicted")),
    el("tr", null, el("th.axis", { scope: "col" }, "true"), names.map((name) => el("th", { scope: "col", title: name }, name))));
  const body = el("tbody", null, counts.map((row, i) => el("tr", null,
    el("th", { scope: "row", title: names[i] }, names[i]),
    row.map((count, j) => el(i === j ? "td.right" : `td.wrong.s${shade(count, row)}`, null, whole(count))))));
  const table = el("div.scroll", { tabindex: 0, role: "region", "aria-label": `${caption}: confusion matrix` }, el("table.matrix", null, head, body));
  return el("div", null, el("p.caption", null, caption), table, rates);
}
