// Why a memory came up, and what the person says about it: right, outdated, wrong, never mention, forget.
import { post } from "mira/api";
import { dayLabel, fullDate } from "mira/dates";
import { h } from "mira/dom";

const VERDICTS = [
  ["right", "Right"],
  ["outdated", "Outdated"],
  ["wrong", "Wrong"],
  ["never_mention", "Never mention"],
  ["forget", "Forget"],
];
const STANDING = {
  right: "You said this is right.",
  outdated: "This is past.",
  wrong: "Put away as wrong.",
  never_mention: "This is never mentioned.",
  archived: "This is in the archive.",
};

const address = (memory) => `/api/v1/memories/${encodeURIComponent(memory.id)}/feedback/`;
const page = (memory) => `/memories/${encodeURIComponent(memory.id)}/`;

function small(text, run, extra = {}) {
  return h("button", { class: "button button--ghost button--small", type: "button", text, on: { click: run }, ...extra });
}

/** One memory under an answer. `turn` is the id of the turn it came up in. */
export function surfacedItem(memory, turn) {
  const item = h("li", { class: "surfaced__item", data: { memory: memory.id } });
  const verdicts = h("div", { class: "surfaced__verdicts" });
  item.append(
    h("a", { class: "surfaced__text", href: page(memory), text: memory.text }),
    ...said(memory),
    why(memory),
    verdicts,
  );
  new Verdicts(memory, turn, item, verdicts).show();
  return item;
}

/** The sentence it rests on, as a way to where it was said. */
function said({ source, text }) {
  if (!source) return [];
  const repeats = !source.sentence || text.includes(source.sentence);
  const words = repeats ? "where you said it" : h("q", { text: source.sentence });
  return [h("p", { class: "surfaced__said" }, h("a", { href: `/?at=${encodeURIComponent(source.message)}`, title: fullDate(new Date(source.said_at)) }, words))];
}

function why(memory) {
  const date = new Date(memory.created_at);
  return h("div", { class: "meta surfaced__why", title: `Noted ${fullDate(date)}` }, h("span", { text: memory.why || `noted ${dayLabel(date)}` }));
}

class Verdicts {
  constructor(memory, turn, item, box) {
    Object.assign(this, { memory, turn, item, box });
  }

  /** The five taps, or what was said before with its undo. */
  show() {
    if (this.memory.judged) this.#tell(STANDING[this.memory.judged], this.memory.judged === "archived" ? null : { verdict: this.memory.judged, reopened: [] });
    else this.#offer();
  }

  #offer() {
    const buttons = VERDICTS.map(([verdict, text]) =>
      small(text, () => (verdict === "forget" ? this.#ask() : this.#judge(verdict)), { data: { verdict } }),
    );
    this.box.replaceChildren(h("div", { class: "surfaced__taps", role: "group", "aria-label": `About: ${this.memory.text.slice(0, 80)}` }, buttons));
  }

  /** Say what happened; the person goes on from there. */
  #tell(text, undo = null, ...more) {
    const line = h("p", { class: "surfaced__status", role: "status", tabindex: "-1" }, h("span", { text }));
    if (undo) line.append(" ", small("Undo", () => this.#takeBack(undo), { data: { undo: "" } }));
    this.box.replaceChildren(line, ...more);
    return line;
  }

  #ask() {
    const keep = small("Keep it", () => this.#back());
    this.box.replaceChildren(
      h("p", { class: "surfaced__status", role: "alert", text: "Forget this for good, with all that was made of it?" }),
      h("div", { class: "surfaced__taps" }, h("button", { class: "button button--danger button--small", type: "button", text: "Forget it", data: { confirm: "" }, on: { click: () => this.#judge("forget") } }), keep),
    );
    keep.focus();
  }

  #back() {
    this.#offer();
    this.box.querySelector("button")?.focus();
  }

  async #judge(verdict, nowTrue = "") {
    const body = { verdict, ...(this.turn && { turn: this.turn }), ...(nowTrue && { now_true: nowTrue }) };
    // Said before the call: the page hears of it by the stream, too, maybe sooner.
    if (verdict === "forget") this.item.dataset.forgotten = "";
    const judged = await this.#call(address(this.memory), body);
    if (!judged) {
      delete this.item.dataset.forgotten;
      return;
    }
    if (verdict === "forget") this.#forgotten();
    else {
      this.memory.judged = verdict;
      const undo = judged.can_undo ? { verdict, reopened: judged.reopened } : null;
      const more = verdict === "outdated" && !judged.replaced_by ? [this.#askWhatIsTrue()] : [];
      this.#tell(judged.said, undo, ...more).focus();
    }
  }

  #askWhatIsTrue() {
    const id = `now-true-${this.memory.id}`;
    const field = h("input", { class: "input", id, type: "text", minlength: "3", maxlength: "2000", required: true, autocomplete: "off" });
    const form = h("form", { class: "surfaced__now" }, h("label", { for: id, text: "What is true now?" }), field, h("button", { class: "button button--small", type: "submit", text: "Keep it" }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#judge("outdated", field.value.trim());
    });
    return form;
  }

  async #takeBack(undo) {
    const done = await this.#call(`${address(this.memory)}undo/`, undo);
    if (!done) return;
    this.memory.judged = null;
    this.#back();
  }

  #forgotten() {
    this.item.replaceChildren(
      h("p", { class: "surfaced__status", role: "status", tabindex: "-1" }, "Forgotten, with all that was made of it. ", h("a", { href: "/memories/forgotten/", text: "The receipt" })),
    );
    this.item.firstElementChild.focus();
  }

  async #call(path, body) {
    for (const button of this.box.querySelectorAll("button")) button.disabled = true;
    try {
      return await post(path, body);
    } catch (error) {
      if (error.status === 404) this.item.replaceChildren(h("p", { class: "surfaced__status", role: "status", text: "This memory is gone already." }));
      else {
        this.#offer();
        this.box.prepend(h("p", { class: "surfaced__status surfaced__status--bad", role: "alert", text: error.message }));
      }
      return null;
    }
  }
}
