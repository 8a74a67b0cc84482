// A button beside each command that copies it.

export function startCopy() {
  add();
  document.addEventListener("tocsin:read", add);
}

function add() {
  if (!navigator.clipboard) return;
  for (const command of document.querySelectorAll(".cli:not([data-copied])")) {
    command.dataset.copied = "";
    const text = command.textContent.trim();
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${text}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    command.append(button);
  }
}
