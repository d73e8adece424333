// The page: which view is open, the connection, and what a person is told. Views are in overview.js and monitor.js.

import * as api from "./api.js";
import { say } from "./dom.js";
import { MonitorView } from "./monitor.js";
import { Overview } from "./overview.js";
import { span } from "./words.js";

const content = document.getElementById("content");
const connection = document.getElementById("connection");
const notice = document.getElementById("notice");
const forget = document.getElementById("forget");

let view = null;
let feed = null;
let lost = null; // since when the connection is gone, in ms, and when the next attempt is

// What a person is told ---------------------------------------------------------------------------------------

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
  if (lost === null) { say(connection, "live"); return; }
  const gone = span((Date.now() - lost.since) / 1000);
  say(connection, `Connection lost ${gone} ago. What you see is from before; trying again.`);
}

// Fetch everything again; what fails now is fetched when the connection is back.
async function refresh() {
  const mine = view;
  try {
    await mine.refresh();
  } catch (error) {
    if (mine !== view) return;
    if (error instanceof api.Refused) tell(error.message, true);
    else if (!(error instanceof TypeError)) throw error;
  }
}

// Views -------------------------------------------------------------------------------------------------------

function chosen() {
  const found = /^#\/monitor\/(.+)$/.exec(location.hash);
  if (!found) return null;
  try { return decodeURIComponent(found[1]); } catch { return null; }
}

function open() {
  feed?.close();
  view?.close();
  const name = chosen();
  view = name === null ? new Overview() : new MonitorView(name, tell);
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
      lost ??= { since: Date.now() };
      showConnection();
    },
    event(kind, data) { if (mine === view) mine.event(kind, data); },
  };
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
