// Live updates. One feed per tab (server-sent events, resumed by seq), and only while the tab is visible: a
// hidden tab closes it, and continues after the last seq when it is shown again, so it misses nothing.
//
// A record says only that something changed. The page is then read again and merged (htmx), at most once in
// MIN_MS, and never while the reading before is under way.

const MIN_MS = 1000;
const SETTLE_MS = 150;
const LATE_MS = 40_000;

let source = null;
let after = 0;
let timer = 0;
let reading = false;
let pending = false;
let readAt = 0;
let paused = false;
let lateTimer = 0;

const main = () => document.getElementById("main");
const label = () => document.getElementById("live");

export function startLive() {
  const region = main();
  if (!region?.hasAttribute("data-live")) return;
  after = Number(label().dataset.after);
  paused = sessionStorage.getItem("tocsin-paused") === "yes";
  const button = document.getElementById("pause");
  button.hidden = false;
  button.addEventListener("click", togglePause);
  document.addEventListener("visibilitychange", follow);
  document.addEventListener("htmx:finally:request", finished);
  window.addEventListener("pagehide", close);
  follow();
}

export function togglePause() {
  paused = !paused;
  sessionStorage.setItem("tocsin-paused", paused ? "yes" : "no");
  follow();
}

/** Read the page again now. */
export function refresh() {
  pending = true;
  soon(0);
}

function follow() {
  const button = document.getElementById("pause");
  if (button) button.textContent = paused ? "Continue" : "Pause";
  if (paused || document.hidden) {
    close();
    show("", paused ? "paused" : "not live");
  } else if (source === null) {
    open();
  }
}

function open() {
  const query = encodeURIComponent(main().dataset.live);
  source = new EventSource(`/v1/live?query=${query}&after=${after}`);
  source.onopen = () => show("on", "live");
  source.onmessage = (message) => {
    received(message);
    pending = true;
    soon(SETTLE_MS);
  };
  source.addEventListener("resync", (message) => {
    received(message);
    refresh();
  });
  source.addEventListener("end", (message) => {
    received(message);
    close();
    show("late", "connecting");
    setTimeout(follow, 2000);
  });
  source.onerror = () => {
    show("late", "connecting");
    // The browser gives up after an answer that is no stream, such as 503 while Postgres is away.
    if (source?.readyState === EventSource.CLOSED) {
      close();
      setTimeout(follow, 5000);
    }
  };
}

function close() {
  source?.close();
  source = null;
  clearTimeout(timer);
  clearTimeout(lateTimer);
  timer = 0;
}

function received(message) {
  if (message.lastEventId) after = Number(message.lastEventId);
  clearTimeout(lateTimer);
  lateTimer = setTimeout(() => show("late", "no answer"), LATE_MS * 60);
}

function soon(delay) {
  if (timer || reading || document.hidden) return;
  timer = setTimeout(read, Math.max(delay, readAt + MIN_MS - Date.now()));
}

function read() {
  timer = 0;
  if (!pending || busy()) return void (pending && soon(MIN_MS));
  pending = false;
  readAt = Date.now();
  if (!window.htmx) return show("late", "changed: reload the page");
  reading = true;
  main().dispatchEvent(new CustomEvent("refresh"));
}

/** Whether a person types or has opened something that a reading would close. */
function busy() {
  const active = document.activeElement;
  return Boolean(active?.closest?.("#main form") && active.matches("input:not([type=checkbox]), textarea, select"));
}

function finished() {
  reading = false;
  document.dispatchEvent(new CustomEvent("tocsin:read"));
  if (pending) soon(0);
}

function show(state, text) {
  const element = label();
  element.className = `live ${state}`;
  element.querySelector(".live-text").textContent = text;
}
