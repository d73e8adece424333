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

const PAUSE = 500; // ms between two looks,
const LONGEST_PAUSE = 4000; // and at most, however slow the server
const AGAIN = 60_000; // ms between two looks though nothing was heard; hours and days go by

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
async function look(mine) {
  if (mine !== view) return;
  try {
    await mine.look();
    heard = Date.now() / 1000;
  } catch (error) {
    if (mine !== view) return;
    if (error instanceof api.Refused) tell(error.message, true);
    else if (error instanceof TypeError) mine.unreachable();
    else throw error;
  }
}

// One look at a time; the pause after it is longer when the server takes longer.
class Looks {
  constructor(mine) { Object.assign(this, { mine, ended: Promise.resolve(), free: 0, next: null, last: Date.now() }); }

  // Done after a look that has begun after this call.
  again() {
    this.next ??= this.ended.catch(() => {}).then(() => new Promise((done) => setTimeout(done, Math.max(0, this.free - Date.now())))).then(() => {
      const began = Date.now();
      this.next = null;
      this.ended = look(this.mine).finally(() => { this.last = Date.now(); this.free = this.last + Math.min(Math.max(PAUSE, 10 * (this.last - began)), LONGEST_PAUSE); });
      return this.ended;
    });
    return this.next;
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
  view?.close?.();
  const [name, values] = chosen();
  view = name === null ? new Overview() : new MonitorView(name, values, tell);
  content.replaceChildren(view.node);
  const mine = view;
  mine.looks = new Looks(mine);
  const listener = {
    connected() {
      if (mine !== view) return;
      lost = null;
      showConnection();
      forget.hidden = !api.hasToken();
      mine.looks.again();
    },
    lost() {
      if (mine !== view) return;
      lost ??= Date.now();
      showConnection();
      mine.unreachable();
    },
    changed() {
      if (mine === view && !document.hidden) mine.looks.again();
    },
  };
  mine.asks = location.hash.endsWith("/acknowledge"); // as alerts link to it
  mine.looks.again();
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
document.addEventListener("visibilitychange", () => { if (!document.hidden) { feed.hurry(); view.looks.again(); } });
// A page that is kept for the back button would keep its connection too, of which a browser has six for a server.
addEventListener("pagehide", () => feed.close());
addEventListener("pageshow", (event) => { if (event.persisted) open(); });
forget.addEventListener("click", () => { api.forgetToken(); location.reload(); });
setInterval(() => {
  if (document.hidden) return;
  view.render();
  if (lost === null && Date.now() - view.looks.last > AGAIN) view.looks.again();
  if (lost !== null) showConnection();
}, 1000);

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
document.getElementById("zone").textContent = `Times are in ${zone}.`;
open();
window.fourrates = { view: () => view }; // for tests and the curious
