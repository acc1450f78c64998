// Where the older messages of this part are told in short for MIRA: a quiet line that opens her words.
import { get } from "mira/api";
import { h } from "mira/dom";

const SETTLE_MS = 1500; // after the list has changed, before the server is asked anew

function divider({ text }) {
  const words = h("div", { class: "brief__text", text });
  const note = h("p", { class: "brief__note" }, "Above this line I keep your messages in short. ", h("a", { href: "/context/", text: "What MIRA sees" }));
  return h("details", { class: "brief", data: { brief: "" } }, h("summary", {}, h("span", { text: "Earlier in this part, in MIRA’s words" })), words, note);
}

/** Keeps the line behind the last message that the brief tells, whenever that is on the page. */
export function startBrief(list) {
  let brief = null;
  let newest = null;
  let timer = 0;

  function place() {
    const shown = list.querySelector("[data-brief]");
    const entry = brief && list.querySelector(`[data-id="${CSS.escape(brief.message)}"]`);
    if (shown && shown.parentElement === entry && shown.dataset.brief === brief.updated_at) return;
    const wasOpen = shown?.open ?? false;
    shown?.remove();
    if (!entry) return;
    const line = divider(brief);
    line.dataset.brief = brief.updated_at;
    line.open = wasOpen;
    entry.append(line);
  }

  async function ask() {
    try {
      brief = (await get("/api/v1/brief/")).brief;
    } catch {
      return; // Asked again with the next message.
    }
    place();
  }

  function changed() {
    place();
    const last = list.lastElementChild;
    if (last === newest) return;
    newest = last;
    clearTimeout(timer);
    timer = setTimeout(ask, SETTLE_MS);
  }

  new MutationObserver(changed).observe(list, { childList: true });
  document.addEventListener("mira:deleted", ask);
  ask();
}
