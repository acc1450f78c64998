// The recall page: copying the context, and reading on where the answer begins. The rest needs no script.
import { copyText } from "mira/dom";

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const done = await copyText(document.querySelector(button.dataset.copy).textContent);
  const label = button.querySelector("[data-copy-label]");
  label.textContent = done ? "Copied" : "Could not copy";
  setTimeout(() => { label.textContent = "Copy"; }, 1600);
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "recall-result") return;
  document.getElementById("recall-sum-title")?.focus({ preventScroll: true });
});
