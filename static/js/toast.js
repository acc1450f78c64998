// Short passing messages at the top of the page.
import { h, icon } from "mira/dom";

const STAYS_MS = { info: 5000, good: 4000, bad: 9000 };

function leave(element) {
  element.remove();
}

function furnish(element, staysMs) {
  element.append(
    h("button", { class: "icon-button", type: "button", "aria-label": "Dismiss", on: { click: () => leave(element) } }, icon("close")),
  );
  let timer = setTimeout(leave, staysMs, element);
  element.addEventListener("pointerenter", () => clearTimeout(timer));
  element.addEventListener("pointerleave", () => {
    timer = setTimeout(leave, staysMs, element);
  });
}

/** Show `text`; `action` is {label, run}. */
export function toast(text, { kind = "info", action } = {}) {
  const box = document.querySelector("[data-toasts]");
  for (const shown of box.children) if (shown.dataset.text === text) shown.remove();
  const element = h("li", { class: `toast toast--${kind}`, data: { text } }, h("span", { text }));
  if (action) {
    const run = () => {
      leave(element);
      action.run();
    };
    element.append(h("button", { class: "button button--small", type: "button", text: action.label, on: { click: run } }));
  }
  furnish(element, STAYS_MS[kind]);
  box.append(element);
  return element;
}

/** Give the toasts that came with the page their close button and their end. */
export function adoptToasts() {
  for (const element of document.querySelectorAll("[data-toast]")) furnish(element, STAYS_MS.info * 2);
}
