// Elements made from names and values. A string is always text: nothing on this page parses markup.

// What a reader could not see, or what turns the line around, is shown as its escape; joiners are parts of words and emoji.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;
const escaped = (c) => (c === "\u200c" || c === "\u200d" ? c : `\\u{${c.codePointAt(0).toString(16)}}`);

export const printable = (value) => String(value).replace(HIDDEN, escaped);

export function shortened(value, most = 100) {
  const shown = printable(value);
  return shown.length <= most ? shown : `${shown.slice(0, most - 1)}…`;
}

// el("p.soft", {title: "..."}, "text", node, [more]); on* are listeners, null and false are left out.
export function el(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Text that changes often: touched only when it did, so that a selection stays and a screen reader is not called.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// A section of the page under its heading.
let sections = 0;
export function section(title, ...children) {
  const id = `h-${++sections}`;
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...children);
}

// How far the evidence has come towards an alarm. It may stand a little past it: the bar ends where the alarm is.
export function meter(label) {
  const fill = el("i");
  const bar = el("div.meter", { role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
  bar.show = (share, status) => {
    if (status === "drifted") share = 1; // it is there; what is gathered since is for the next change
    const percent = Math.max(0, Math.min(100, 100 * (share ?? 0)));
    fill.style.width = `${percent}%`;
    bar.className = `meter ${status ?? ""}`;
    bar.setAttribute("aria-valuenow", Math.round(percent));
    bar.setAttribute("aria-valuetext", `${Math.round(percent)} % of an alarm`);
    return bar;
  };
  return bar;
}
