// The theme switch: auto follows the device, the other two are kept on this device.
const KEY = "mira.theme";

function current() {
  return document.documentElement.dataset.theme ?? "auto";
}

function apply(choice) {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
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
      try {
        localStorage.setItem(KEY, choice);
      } catch {
        // Storage is off: the choice lasts until the page is left.
      }
      showAll();
    });
  }
  window.addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    apply(event.newValue ?? "auto");
    showAll();
  });
  showAll();
}
