// The page, with its open view, connection and notices. Views are in overview.js and monitor.js.

import * as api from "./api.js";
import { say } from "./dom.js";
import { MonitorView } from "./monitor.js";
import { Overview } from "./overview.js";
import { clock } from "./words.js";

const content = document.getElementById("content");
const connection = document.getElementById("connection");
const notice = document.getElementById("notice");
const forget = document.getElementById("forget");

let view = null;
let feed = null;
let lost = null; // since when the connection is gone, in ms
let heard = null; // when the server last answered, in seconds

// Notices -----------------------------------------------------------------------------------------------

let fading = null;
function tell(text, failed = false) {
  clearTimeout(fading);
  notice.hidden = false;
  notice.classList.toggle("failed", failed);
  say(notice, text);
  fading = setTimeout(() => { notice.hidden = true; }, failed ? 12_000 : 6000);
}

function showConnection() {
  document.body.classList.toggle("stale", lost !== null);
  connection.className = `connection ${lost === null ? "live" : "lost"}`;
  say(connection, lost === null ? "Live" : heard === null ? "Reconnecting…" : `Showing last known state of ${clock(heard, { exact: true })}. Reconnecting…`);
}

// Fetch everything again; failures are retried when the connection is back.
async function refresh() {
  const mine = view;
  try {
    await mine.refresh();
    heard = Date.now() / 1000;
  } catch (error) {
    if (mine !== view) return;
    if (error instanceof api.Refused) tell(error.message, true);
    else if (error instanceof TypeError) mine.unreachable();
    else throw error;
  }
}

// Views -------------------------------------------------------------------------------------------------------

// The monitor in the address and the values of its segment, or null.
function chosen() {
  const [, name, values] = /^#\/monitor\/([^/]+)(?:\/segment\/([^/]+))?(?:\/acknowledge)?$/.exec(location.hash) ?? [];
  try { return [name ? decodeURIComponent(name) : null, values ? JSON.parse(decodeURIComponent(values)) : null]; } catch { return [null, null]; }
}

function open() {
  feed?.close();
  view?.close();
  const [name, values] = chosen();
  view = name === null ? new Overview() : new MonitorView(name, values, tell);
  content.replaceChildren(view.node);
  const mine = view;
  const listener = {
    connected(again) {
      if (mine !== view) return;
      lost = null;
      showConnection();
      forget.hidden = !api.hasToken();
      if (again) refresh();
    },
    lost() {
      if (mine !== view) return;
      lost ??= Date.now();
      showConnection();
      mine.unreachable();
    },
    event(kind, data) {
      heard = Date.now() / 1000;
      if (mine === view) mine.event(kind, data);
    },
  };
  mine.asks = location.hash.endsWith("/acknowledge"); // as alerts link to it
  refresh();
  feed = new api.Feed(view.monitor, listener);
}

addEventListener("hashchange", () => {
  if (location.hash === "#content") return;
  open();
  scrollTo(0, 0);
  content.focus({ preventScroll: true });
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
addEventListener("online", () => feed.hurry());
document.addEventListener("visibilitychange", () => { if (!document.hidden) { feed.hurry(); view.look?.(0); } });
// A page that is kept for the back button would keep its connection too, of which a browser has six for a server.
addEventListener("pagehide", () => feed.close());
addEventListener("pageshow", (event) => { if (event.persisted) open(); });
forget.addEventListener("click", () => { api.forgetToken(); location.reload(); });
setInterval(() => {
  if (document.hidden) return;
  view.tick();
  if (lost !== null) showConnection();
}, 1000);

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
document.getElementById("zone").textContent = `Times are in ${zone}.`;
open();
window.fourrates = { view: () => view }; // for tests and the curious
