// The memory pages: what htmx leaves to do. Everything here also works without it.
import { toast } from "mira/toast";

document.addEventListener("htmx:responseError", (event) => {
  const gone = event.detail.xhr.status === 404;
  toast(gone ? "This memory is gone already. Reload the page." : "That did not work. Try again in a moment.", { kind: "bad" });
});

document.addEventListener("htmx:sendError", () => {
  toast("MIRA cannot be reached. Try again in a moment.", { kind: "bad" });
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  event.target.closest?.("[data-memory]")?.querySelector("[data-memory-cancel]")?.click();
});

// A row that took the place of a form or a question is read on from where the person was.
document.addEventListener("htmx:afterSwap", (event) => {
  const row = document.getElementById(event.detail.target.id);
  if (row?.matches("[data-memory]") && !row.querySelector("[autofocus]")) {
    row.querySelector(".memory__actions a")?.focus({ preventScroll: true });
  }
});
