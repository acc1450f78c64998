// What every page does: theme, menus, dialogs, toasts, local times.
import { clock, dayLabel, fullDate } from "mira/dates";
import { startTheme } from "mira/theme";
import { adoptToasts } from "mira/toast";

const RELATIVE = /^(Today|Yesterday)$/;
const FORMS = { day: dayLabel, clock, full: fullDate };

function localiseTimes(root) {
  for (const element of root.querySelectorAll("time[datetime][data-when]")) {
    const date = new Date(element.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    const text = (FORMS[element.dataset.when] ?? fullDate)(date);
    const whole = element.parentElement.matches("a") ? element.parentElement : element;
    const isInside = /\S/.test(whole.previousSibling?.textContent ?? ""); // of a sentence
    element.textContent = isInside ? text.replace(RELATIVE, (word) => word.toLowerCase()) : text;
    element.title = fullDate(date);
  }
}

function startMenus() {
  const menus = () => document.querySelectorAll("[data-menu][open]");
  document.addEventListener("click", (event) => {
    for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape") return;
      for (const menu of menus()) {
        menu.open = false;
        menu.querySelector("summary").focus();
        event.stopPropagation();
      }
    },
    true,
  );
}

function startDialogs() {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog-open]");
    if (opener) document.getElementById(opener.dataset.dialogOpen)?.showModal();
    const closer = event.target.closest("[data-dialog-close]");
    if (closer) closer.closest("dialog")?.close();
    if (event.target instanceof HTMLDialogElement) event.target.close();
  });
}

/** Drafts and unsent messages are this person's; they leave the device with them. */
function forgetOnSignOut() {
  const forget = () => {
    for (const key of Object.keys(localStorage)) {
      if (/^mira\.(draft\.|outbox\.|theme\.unsaved$)/.test(key)) localStorage.removeItem(key);
    }
  };
  document.querySelector("[data-sign-out]")?.addEventListener("submit", () => {
    forget();
    addEventListener("pagehide", forget); // the composer keeps its draft when the page goes; this comes after it
  });
}

/** Sign-up takes the zone from here; days are counted where the person is. */
function fillZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const input of document.querySelectorAll("input[data-timezone]")) input.value = zone ?? "";
}

/** The worker that says so when MIRA cannot be reached. It wants https, or this very machine. */
function startWorker() {
  navigator.serviceWorker?.register("/service-worker.js").catch(() => undefined); // a page works without
}

startTheme();
startMenus();
startDialogs();
adoptToasts();
forgetOnSignOut();
localiseTimes(document);
fillZone();
startWorker();
document.addEventListener("htmx:load", (event) => localiseTimes(event.detail.elt));
