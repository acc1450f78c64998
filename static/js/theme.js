// The theme switch: auto follows the device. The choice is the account's; this device keeps it too,
// for the pages before sign-in and until the server has heard of it.
import { patch } from "mira/api";

const KEY = "mira.theme";
const UNSAVED = "mira.theme.unsaved";

function current() {
  return document.documentElement.dataset.theme ?? "auto";
}

function apply(choice) {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

/** Kept on the device at once and on the account as soon as it can be reached. */
function keep(choice) {
  try {
    localStorage.setItem(KEY, choice);
    if ("account" in document.documentElement.dataset) localStorage.setItem(UNSAVED, choice);
  } catch {
    // Storage is off: the account alone has it.
  }
  save(choice);
}

function save(choice) {
  if (!("account" in document.documentElement.dataset)) return;
  patch("/api/v1/me/", { settings: { theme: choice === "auto" ? "system" : choice } }).then(
    () => {
      try {
        if (localStorage.getItem(UNSAVED) === choice) localStorage.removeItem(UNSAVED);
      } catch {
        // Storage is off: there is nothing to take back.
      }
    },
    () => undefined, // Told with the next page.
  );
}

function saveLeftOver() {
  try {
    const choice = localStorage.getItem(UNSAVED);
    if (choice) save(choice);
  } catch {
    // Storage is off: nothing was left over.
  }
}

function show(group) {
  for (const button of group.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === current()));
  }
}

/** Make every `[data-theme-switch]` on the page work, in step with other tabs. */
export function startTheme() {
  const groups = document.querySelectorAll("[data-theme-switch]");
  const showAll = () => groups.forEach(show);
  for (const group of groups) {
    group.addEventListener("click", (event) => {
      const choice = event.target.closest("[data-theme-choice]")?.dataset.themeChoice;
      if (!choice) return;
      apply(choice);
      keep(choice);
      showAll();
    });
  }
  window.addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    apply(event.newValue ?? "auto");
    showAll();
  });
  saveLeftOver();
  showAll();
}
