// Elements made from names and values. A string is always text, and nothing on this page parses markup.

// Characters that a reader cannot see, or that turn the line around, are shown as escapes; joiners are parts of words and emoji.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;
const escaped = (c) => (c === "\u200c" || c === "\u200d" ? c : `\\u{${c.codePointAt(0).toString(16)}}`);

export const printable = (value) => String(value).replace(HIDDEN, escaped);

export function shortened(value, most = 100) {
  const shown = printable(value);
  return shown.length <= most ? shown : `${shown.slice(0, most - 1)}…`;
}

const LISTENERS = ["onclick", "onchange", "oninput", "ontoggle"];
const present = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

// el("p.soft", {title: "..."}, "text", node, [more]); on* are listeners, null and false are left out.
export function el(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node[name] = value;
    else node.setAttribute(name, value === true && !name.startsWith("aria") ? "" : String(value));
  }
  const shown = present(children);
  node.append(...shown);
  node.listens = LISTENERS.some((name) => attributes?.[name]) || shown.some((child) => child.listens); // it, or a part of it
  return node;
}

// Text that changes often is touched only when it did, so a selection stays and a screen reader stays quiet.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

// Makes a node like a fresh one. What stays keeps its focus, selection and animation, a field its text, and details stay
// open; a node with a data-id stays with it.
export function follow(node, fresh) {
  if (!fresh.listens && !node.listens && node.isEqualNode(fresh)) return;
  if (node.nodeType === Node.TEXT_NODE) {
    node.data = fresh.data;
    return;
  }
  for (const name of ["listens", ...LISTENERS]) node[name] = fresh[name];
  for (const { name } of [...node.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of fresh.attributes) {
    if (name === "style") node.style.cssText = value; // as an attribute the policy of the server would stop it
    else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  let next = node.firstChild; // the first that is not yet in its place
  for (const child of [...fresh.childNodes]) {
    const id = child.dataset?.id;
    const own = id === next?.dataset?.id || id === undefined ? next : [...node.children].find((other) => other.dataset.id === id);
    if (own?.nodeName !== child.nodeName || own.dataset?.id !== id) node.insertBefore(child, next);
    else {
      if (own === next) next = next.nextSibling;
      else node.insertBefore(own, next);
      follow(own, child);
    }
  }
  while (next) {
    const { nextSibling } = next;
    next.remove();
    next = nextSibling;
  }
}

// A section of the page under its heading.
export function section(title, ...children) {
  const id = `h-${title.toLowerCase().replaceAll(" ", "-")}`;
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...children);
}

// Ask for some fields in a dialog; null if it was cancelled.
export function ask(title, text, fields, confirm, cancel = "Cancel") {
  const inputs = fields.map(({ label, node }, i) => { node.id = `field-${i}`; return [el("label", { for: node.id }, label), node]; });
  const dialog = el("dialog", { "aria-labelledby": "dialog-title" }, el("form", { method: "dialog" },
    el("h2", { id: "dialog-title" }, title), el("p", null, text), inputs,
    el("p.buttons", null, cancel && el("button", { value: "", formnovalidate: true }, cancel), el("button.main", { value: "yes" }, confirm))));
  document.body.append(dialog);
  dialog.querySelector("form").addEventListener("keydown", (event) => { // Enter means yes, not the first button
    if (event.key === "Enter" && event.target.matches("input, select")) { event.preventDefault(); dialog.querySelector(".main").click(); }
  });
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(dialog.returnValue === "yes" ? fields.map(({ node }) => node.value.trim()) : null);
  }));
}

// The state as a shape, readable without colour.
export const mark = (status) => el(`i.mark.${status}`, { "aria-hidden": true });

// How near the evidence is to an alarm; the bar ends at the alarm, even if the evidence is past it.
export function meter(share, status) {
  const full = Math.max(0, Math.min(100, 100 * (status === "drifted" ? 1 : share ?? 0)));
  const text = status === "drifted" ? "alarm open" : `${Math.round(full)} %`;
  const fill = el("i");
  fill.style.width = `${full}%`;
  return el(`div.meter.${status ?? "share"}`, { role: "meter", "aria-label": "Alarm level", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(full), "aria-valuetext": text }, fill);
}

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [120, 22];

function shape(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// A small line without axes: {time, value}, and the level that is normal.
export function spark(points, normal) {
  const values = points?.value.filter((value) => value !== null) ?? [];
  if (values.length < 2) return null;
  const all = normal === null ? values : [...values, normal];
  const middle = (Math.max(...all) + Math.min(...all)) / 2;
  const half = Math.max((Math.max(...all) - Math.min(...all)) / 2, 0.05);
  const [first, last] = [points.time[0], Math.max(points.time.at(-1), points.time[0] + 1)];
  const y = (value) => (HEIGHT / 2 - ((value - middle) / half) * (HEIGHT / 2 - 2)).toFixed(1);
  const line = points.value.map((value, i) => value !== null && `${(((points.time[i] - first) / (last - first)) * WIDTH).toFixed(1)},${y(value)}`).filter(Boolean);
  const drawn = shape("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
  if (normal !== null) drawn.append(shape("path", { class: "normal", d: `M0,${y(normal)}H${WIDTH}` }));
  drawn.append(shape("path", { class: "line", d: `M${line.join("L")}` }));
  return drawn;
}
