// Rows of lists by keyboard (j, k, Enter, x), and the number of rows that are selected.

export function startRows() {
  count();
  document.addEventListener("change", (event) => event.target.matches?.("input[name=id]") && count());
  document.addEventListener("tocsin:read", count);
}

export function move(step) {
  const rows = [...document.querySelectorAll("#main tbody tr")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("at"));
  const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
  rows[at]?.classList.remove("at");
  next.classList.add("at");
  next.querySelector("a.row, input")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

export function pick() {
  const box = document.querySelector("#main tr.at input[name=id]:not(:disabled)");
  if (box) box.click();
}

function count() {
  const bar = document.getElementById("actbar");
  if (!bar) return;
  const number = document.querySelectorAll("#main input[name=id]:checked").length;
  bar.querySelector("[data-selected]").textContent = number;
  bar.classList.toggle("idle", number === 0);
  for (const button of bar.querySelectorAll("button")) button.disabled = number === 0;
}
