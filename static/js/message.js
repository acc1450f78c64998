// How one message looks: what the person said, what MIRA answered, and all that hangs on an answer.
import { amendButtons } from "mira/amend";
import { fileList } from "mira/attachments";
import { clock, fullDate } from "mira/dates";
import { copyButton, giveFocusBack, h, icon, star } from "mira/dom";
import { surfacedItem } from "mira/feedback";
import { limitNote, quotedNote } from "mira/limits";
import { GrowingText, renderMarkdown } from "mira/render";

const FOLD_AFTER = 1800; // characters of a person's message that are shown before "Show all"

function time(message) {
  const date = new Date(message.created_at);
  return h("time", { datetime: message.created_at, title: fullDate(date), text: clock(date) });
}

/** The person's words, exactly as typed. Long ones are folded. */
export function saidText(text) {
  if (!text) return [];
  const body = h("div", { class: "said__text", text });
  if (text.length <= FOLD_AFTER) return [body];
  body.classList.add("said__text--folded");
  const more = h("button", { class: "said__more", type: "button", text: "Show all", "aria-expanded": "false" });
  more.addEventListener("click", () => {
    const folded = body.classList.toggle("said__text--folded");
    more.textContent = folded ? "Show all" : "Show less";
    more.setAttribute("aria-expanded", String(!folded));
  });
  return [body, more];
}

/** To what MIRA had before her when she wrote this answer. */
function contextLink({ turn, is_off_record: isOffRecord }) {
  const label = "What MIRA saw";
  return turn && !isOffRecord ? [h("a", { class: "icon-button", href: `/context/${encodeURIComponent(turn)}/`, "aria-label": label, title: label }, icon("eye"))] : [];
}

class View {
  constructor(role, who) {
    this.who = who;
    this.article = h("article", { class: `message message--${role}` });
    this.element = h("li", { class: "entry" }, this.article);
    this.message = null;
  }

  adopt(message) {
    this.message = message;
    this.element.dataset.id = message.id;
    this.setVeiled(message.is_off_record);
  }

  get isVeiled() {
    return this.article.classList.contains("message--veiled");
  }

  /** Off the record: edged, and said to a screen reader. */
  setVeiled(isVeiled) {
    this.article.classList.toggle("message--veiled", Boolean(isVeiled));
    this.article.setAttribute("aria-label", isVeiled ? `${this.who}, off the record` : this.who);
  }

  /** The line above: a segment's title, a day, or both. `divider` is an element or null. */
  setDivider(divider) {
    this.element.querySelector(":scope > .divider")?.remove();
    if (divider) this.element.prepend(divider);
  }
}

export class SaidView extends View {
  said = h("div", { class: "said" });
  #foot = h("footer", { class: "message__foot" });

  constructor(message) {
    super("user", "You");
    this.article.append(this.said, this.#foot);
    this.update(message);
  }

  update(message) {
    const isSame = this.message?.text === message.text;
    const isSameFoot = isSame && this.message.edited_at === message.edited_at; // a focus in it stays
    this.adopt(message);
    if (!isSame) this.said.replaceChildren(...fileList(message.attachments), ...saidText(message.text));
    const edited = message.edited_at ? h("span", { text: "edited", title: fullDate(new Date(message.edited_at)) }) : null;
    if (!isSameFoot) this.#foot.replaceChildren(...[edited, time(message), ...amendButtons(this)].filter(Boolean));
  }
}

export class ReplyView extends View {
  #growing;
  #body = h("div", { class: "prose markdown" });
  #wait = h("p", { class: "wait", hidden: true }, star(), h("span", { class: "wait__text" }));
  #thinking = h("details", { class: "thinking", hidden: true }, h("summary", { text: "What I think" }), h("div", { class: "thinking__text", tabindex: "0" }));
  #note = h("div", { class: "reply-note", hidden: true });
  #foot = h("footer", { class: "message__foot", hidden: true });
  #tools = h("ul", { class: "tools", hidden: true });
  #surfaced = h("div", { class: "surfaced-slot" });

  /** `announce(text)` hears finished paragraphs of an answer that is being written. */
  constructor(turn, announce = () => undefined) {
    super("mira", "MIRA");
    this.turn = turn;
    this.element.dataset.turn = turn ?? "";
    this.article.setAttribute("aria-label", "MIRA");
    this.article.append(this.#thinking, this.#body, this.#wait, this.#note, this.#tools, this.#foot, this.#surfaced);
    this.#growing = new GrowingText(this.#body, announce);
  }

  get text() {
    return this.message?.text ?? this.#growing.text;
  }

  get isWriting() {
    return this.article.getAttribute("aria-busy") === "true";
  }

  /** An answer from the past. */
  static of(message) {
    const view = new ReplyView(message.turn);
    view.#body.append(renderMarkdown(message.text));
    view.#settle(message);
    return view;
  }

  /** Start (again) with nothing written. */
  begin() {
    this.message = null;
    delete this.element.dataset.id;
    this.#growing.clear();
    this.#note.hidden = true;
    this.#foot.hidden = true;
    this.#setEnd({});
    this.#thinking.hidden = true;
    this.#thinking.querySelector(".thinking__text").textContent = "";
    this.setSurfaced([]);
    this.setTools([]);
    this.article.setAttribute("aria-busy", "true");
    this.setWaiting("Remembering");
  }

  setWaiting(text) {
    this.#wait.hidden = !text;
    this.#wait.querySelector(".wait__text").textContent = text ?? "";
  }

  add(delta) {
    this.setWaiting("");
    this.#wait.hidden = false;
    this.#growing.add(delta);
  }

  addThought(delta) {
    this.#thinking.hidden = false;
    this.setWaiting("Thinking");
    this.#thinking.querySelector(".thinking__text").append(delta);
  }

  /** The stored answer, whole or partial. */
  complete(message) {
    this.#growing.end(message.text);
    this.#settle(message);
  }

  update(message) {
    if (this.message?.text !== message.text) this.#body.replaceChildren(renderMarkdown(message.text));
    this.#settle(message);
  }

  #settle(message) {
    this.adopt(message);
    this.#rest();
    this.#foot.replaceChildren(time(message), copyButton("Copy this answer", () => message.text), ...contextLink(message));
    this.#foot.hidden = false;
    if (message.surfaced) this.setSurfaced(message.surfaced);
    if (message.tools) this.setTools(message.tools);
    this.#setEnd(message);
  }

  /** What can be done about how the answer ends: go on with it, or ask for a real one. */
  #setEnd({ is_cut: isCut, is_quoted: isQuoted, segment }) {
    const isOpen = segment?.status !== "collapsed";
    for (const [isWanted, name, make] of [[isCut, "limit", limitNote], [isQuoted && isOpen, "quoted", quotedNote]]) {
      const shown = this.article.querySelector(`:scope > [data-${name}]`);
      if (isWanted && !shown) this.#note.before(make(this.turn));
      else if (!isWanted) shown?.remove();
    }
  }

  #rest() {
    this.article.removeAttribute("aria-busy");
    this.#wait.hidden = true;
    this.#thinking.hidden = true;
  }

  /** Quiet lines: what tools were used for this answer. */
  setTools(tools) {
    this.#tools.replaceChildren();
    this.#tools.hidden = true;
    tools.forEach((tool) => this.addTool(tool));
  }

  addTool({ ok, summary }) {
    this.#tools.append(h("li", { class: "meta", text: ok ? summary : `${summary}, without success` }));
    this.#tools.hidden = false;
  }

  /** The turn ended without a whole answer. `retry` is null where it cannot be run again; `button`
   * is another thing to do. */
  setNote(text, { kind = "quiet", retry = null, button: other = null } = {}) {
    this.#rest();
    if (!this.message) this.#growing.end();
    this.#note.className = `reply-note reply-note--${kind}`;
    this.#note.replaceChildren(...[h("span", { text }), other].filter(Boolean));
    if (retry) {
      const button = h("button", { class: "button button--small", type: "button", data: { retry: "" } }, icon("retry"), "Try again");
      button.addEventListener("click", async () => {
        giveFocusBack(button);
        button.disabled = true;
        await retry();
        button.disabled = false;
      });
      this.#note.append(button);
    }
    this.#note.hidden = false;
  }

  clearNote() {
    this.#note.hidden = true;
  }

  /** A later turn has begun: this one can no longer be run again. */
  forbidRetry() {
    for (const button of this.article.querySelectorAll(".reply-note [data-retry]")) button.remove();
  }

  /** These memories were forgotten, here or on another page. */
  forgetMemories(ids) {
    for (const item of this.#surfaced.querySelectorAll("[data-memory]:not([data-forgotten])")) if (ids.includes(item.dataset.memory)) item.remove();
    if (this.#surfaced.querySelector("details") && !this.#surfaced.querySelector("li")) this.#surfaced.replaceChildren();
  }

  /** The same memories again leave their rows as the person has them; so does a row that tells of a forgotten one. */
  setSurfaced(memories) {
    const shown = [...this.#surfaced.querySelectorAll("[data-memory]:not([data-forgotten])")].map((item) => item.dataset.memory);
    if (memories.length && shown.join() === memories.map((memory) => memory.id).join()) return;
    const forgotten = this.message ? [...this.#surfaced.querySelectorAll("[data-forgotten]")] : [];
    const wasOpen = this.#surfaced.querySelector("details")?.open ?? false;
    this.#surfaced.replaceChildren();
    if (!memories.length && !forgotten.length) return;
    const count = memories.length === 1 ? "One memory came to mind" : `${memories.length || "No other"} memories came to mind`;
    const items = [...memories.map((memory) => surfacedItem(memory, this.turn)), ...forgotten];
    this.#surfaced.append(h("details", { class: "surfaced", open: wasOpen }, h("summary", { text: count }), h("ul", { class: "surfaced__list" }, items)));
  }
}
