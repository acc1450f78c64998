// Moving through the conversation without a pointer, wherever the focus is.
import { START } from "mira/history";

const FIELDS = "input, textarea, select, [contenteditable]";
const PAGE_SHARE = 0.9;
const LINE_PX = 56;

/** Keys that scroll, in an empty field too: there they would do nothing else. */
const MOVES = { PageUp: (box) => -PAGE_SHARE * box.clientHeight, PageDown: (box) => PAGE_SHARE * box.clientHeight };
const LINES = { ArrowUp: -LINE_PX, ArrowDown: LINE_PX };

/** `box` scrolls; `go(at)` and `toNow()` jump; Ctrl or Cmd and K opens `lookBack`. */
export function startKeyboard({ box, go, toNow, lookBack }) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey || event.shiftKey) return;
    if (document.querySelector("dialog[open]")) return;
    const isCommand = event.ctrlKey || event.metaKey;
    const field = event.target.closest(FIELDS);
    const act = isCommand && event.key.toLowerCase() === "k" ? () => lookBack.open() : field?.value ? null : moveOf(event, { field, isCommand });
    if (!act) return;
    event.preventDefault();
    act();
  });

  function moveOf({ key, target }, { field, isCommand }) {
    if ((key === "Home" || key === "End") && (isCommand || !field)) return key === "Home" ? () => go(START) : () => toNow();
    if (isCommand) return null;
    if (MOVES[key]) return () => box.scrollBy({ top: MOVES[key](box) });
    // Inside the conversation, lists and buttons the browser's own arrows are right.
    if (LINES[key] && target === document.body) return () => box.scrollBy({ top: LINES[key] });
    return null;
  }
}
