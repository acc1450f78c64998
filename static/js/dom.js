// Small builders of elements. Text always enters by textContent.

/**
 * h("button", {class: "button", text: "Send", data: {id: 1}, on: {click: run}, type: "button"}, ...children)
 * A value of null, undefined or false leaves the attribute out; true writes it bare.
 */
export function h(tag, { class: className, text, data, on, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [name, value] of Object.entries(data ?? {})) element.dataset[name] = value;
  for (const [name, listener] of Object.entries(on ?? {})) element.addEventListener(name, listener);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Before something goes that has the focus: what holds it takes the focus over. */
export function giveFocusBack(element) {
  if (element.contains(document.activeElement)) element.closest("[tabindex]")?.focus({ preventScroll: true });
}

const SVG = "http://www.w3.org/2000/svg";

/** An icon of partials/_icons.html. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** The drifting star that stands for MIRA while she is at work. */
export function star() {
  const template = document.querySelector(".brand .mark");
  const svg = template.cloneNode(true);
  svg.setAttribute("class", "mark mark--alive");
  return svg;
}

/** Put text on the clipboard; false when the browser refuses. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Plain http on another machine has no clipboard API; a selected text area still can copy.
    const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A button that copies what `read()` returns and says so for a moment. */
export function copyButton(label, read, className = "icon-button") {
  const button = h("button", { class: className, type: "button", "aria-label": label, title: label }, icon("copy"));
  button.addEventListener("click", async () => {
    const done = await copyText(read());
    button.replaceChildren(icon(done ? "check" : "close"));
    button.setAttribute("aria-label", done ? "Copied" : "Could not copy");
    setTimeout(() => {
      button.replaceChildren(icon("copy"));
      button.setAttribute("aria-label", label);
    }, 1600);
  });
  return button;
}
