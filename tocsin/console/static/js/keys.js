// Shortcuts, and the palette that finds screens, alarms, schedules and rules.
import { move, pick } from "./rows.js";
import { refresh, togglePause } from "./live.js";

const DELAY_MS = 120;
const GO_MS = 1200;
let goUntil = 0;
let found = [];
let selected = 0;
let timer = 0;
let asked = 0;

export function startKeys() {
  document.addEventListener("keydown", press);
  const palette = document.getElementById("palette");
  const input = palette.querySelector("input");
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => search(input.value), DELAY_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      select(selected + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter" && found[selected]) {
      event.preventDefault();
      location.assign(found[selected].path);
    }
  });
}

function press(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") return open(event);
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select, dialog"))
    return undefined;
  if (event.key === "/") return open(event);
  if (event.key === "?") return document.getElementById("shortcuts").showModal();
  if (Date.now() < goUntil) {
    goUntil = 0;
    document.querySelector(`.side a[data-go="${CSS.escape(event.key)}"]`)?.click();
    return undefined;
  }
  const acts = { j: () => move(1), k: () => move(-1), x: pick, p: togglePause, r: refresh, g: () => (goUntil = Date.now() + GO_MS) };
  if (acts[event.key]) {
    event.preventDefault();
    acts[event.key]();
  } else {
    document.querySelector(`#actbar [data-key="${CSS.escape(event.key)}"]:not(:disabled)`)?.click();
  }
  return undefined;
}

function open(event) {
  event.preventDefault();
  const palette = document.getElementById("palette");
  palette.showModal();
  const input = palette.querySelector("input");
  input.select();
  search(input.value);
}

async function search(text) {
  const number = ++asked;
  const answer = await fetch(`/find?q=${encodeURIComponent(text)}`, { headers: { accept: "application/json" } });
  if (!answer.ok || number !== asked) return;
  found = await answer.json();
  document.getElementById("palette-found").replaceChildren(...found.map(item));
  select(0);
}

function item(each, index) {
  const element = document.createElement("li");
  element.setAttribute("role", "option");
  for (const [name, text] of [["kind", each.kind], ["name", each.name], ["sub", each.detail]]) {
    const part = document.createElement("span");
    part.className = name;
    part.textContent = text;
    element.append(part);
  }
  element.addEventListener("click", () => location.assign(each.path));
  element.addEventListener("mousemove", () => select(index));
  return element;
}

function select(index) {
  selected = Math.min(Math.max(index, 0), Math.max(found.length - 1, 0));
  document.querySelectorAll("#palette-found li").forEach((element, at) => element.setAttribute("aria-selected", at === selected));
}
