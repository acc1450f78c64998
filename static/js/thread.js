// The conversation as a list: order, one view a message, dividers between days and segments. A
// stretch of it is on the page; whether that reaches the first and the newest message is told here.
import { dayKey, dayLabel } from "mira/dates";
import { h } from "mira/dom";
import { ReplyView, SaidView } from "mira/message";

const LATER_MAX = 200; // a jump to the end fetches what is older
const UNANSWERED = { failed: "The answer could not be written.", interrupted: "The answer was interrupted.", stopped: "Stopped here." };

function divider({ title, day, plain }) {
  const line = h("div", { class: `divider${title ? " divider--titled" : ""}` });
  if (title) line.append(h("h2", { class: "divider__title", text: title }));
  if (day) line.append(h("p", { class: "divider__day", text: day }));
  if (plain) line.append(h("span", { class: "divider__dots", "aria-hidden": "true" }));
  return line;
}

export class Thread {
  #list;
  #rest;
  #views = []; // in order
  #segments = new Map(); // id -> the newest we know of it
  #announce;
  #rested;
  #reachesEnd = true;
  #later = []; // messages that came while the end was not on the page
  #offstage = null; // the answer that is being written there
  reachesStart = false;

  /** `rested(segment)` hears which part rests at the end of the page, null where none does. */
  constructor({ list, rest, announce, rested }) {
    this.#list = list;
    this.#rest = rest;
    this.#announce = announce;
    this.#rested = rested;
  }

  get isEmpty() {
    return this.#views.length === 0;
  }

  get reachesEnd() {
    return this.#reachesEnd;
  }

  /** When the end is shown again, what happened there meanwhile is put in its place. */
  set reachesEnd(reaches) {
    this.#reachesEnd = reaches;
    if (!reaches) return;
    const [later, written] = [this.#later, this.#offstage];
    this.#later = [];
    this.#offstage = null;
    for (const message of later) if (!this.find(message.id)) this.upsert(message);
    if (written && !this.#replyShown(written.turn)) this.#insertReply(written);
    this.#redraw();
  }

  /** Where the stored messages on the page begin and end. */
  get positions() {
    const stored = this.#views.filter((view) => view.message);
    return { first: stored.at(0)?.message.position, last: stored.at(-1)?.message.position };
  }

  /** The last message that is stored, as a view; undefined in an empty thread. */
  get last() {
    return this.#views.findLast((view) => view.message);
  }

  get lastReply() {
    return this.#views.findLast((view) => view instanceof ReplyView);
  }

  /** The article of the oldest message shown: it stays when its divider changes. */
  get firstElement() {
    return this.#views[0]?.article;
  }

  get lastElement() {
    return this.#views.at(-1)?.article;
  }

  find(messageId) {
    return this.#views.find((view) => view.message?.id === messageId);
  }

  /** The answer of a turn, made right behind its question if there is none. */
  replyOf(turn) {
    const there = this.#replyShown(turn);
    if (there) return there;
    if (this.#offstage?.turn === turn) return this.#offstage;
    const view = new ReplyView(turn, this.#announce);
    if (this.#reachesEnd || this.#questionOf(turn) >= 0) this.#insertReply(view);
    else this.#offstage = view;
    return view;
  }

  #replyShown(turn) {
    return this.#views.find((view) => view instanceof ReplyView && view.turn === turn);
  }

  #questionOf(turn) {
    return this.#views.findIndex((other) => other.message?.turn === turn);
  }

  #insertReply(view) {
    const question = this.#questionOf(view.turn);
    if (this.#views[question]?.isVeiled) view.setVeiled(true);
    this.#insert(view, question < 0 ? this.#views.length : question + 1);
  }

  /** An answer that was never written says so; the newest one is asked about, see turns.js. */
  #noteUnanswered(message) {
    const text = UNANSWERED[message.turn_status];
    if (!text || (message.role === "user" && this.#replyShown(message.turn))) return;
    this.replyOf(message.turn).setNote(message.error?.detail || text, { kind: message.error ? "bad" : "quiet" });
  }

  /** Show a stored message where it belongs, or bring the shown one up to date. */
  upsert(message) {
    this.#learn(message.segment);
    const shown = this.find(message.id);
    if (shown) shown.update(message);
    else {
      const isAnswer = message.role === "assistant" && message.turn;
      const live = isAnswer && (this.#replyShown(message.turn) ?? (this.#offstage?.turn === message.turn ? this.#offstage : null));
      if (live) live.complete(message);
      else if (this.#reachesEnd) {
        this.#place(message);
        this.#noteUnanswered(message);
      }
      if (!this.#reachesEnd) this.#later = [...this.#later, message].slice(-LATER_MAX);
    }
    this.#redraw();
  }

  #place(message) {
    const view = message.role === "user" ? new SaidView(message) : ReplyView.of(message);
    let index = this.#views.length;
    // An answer that is still being written has no date; it stays behind its own question.
    while (index > 0) {
      const before = this.#views[index - 1];
      const isEarlier = before.message ? before.message.position <= message.position : before.turn !== message.turn;
      if (isEarlier) break;
      index -= 1;
    }
    this.#insert(view, index);
  }

  #insert(view, index) {
    const next = this.#views[index];
    this.#views.splice(index, 0, view);
    this.#list.insertBefore(view.element, next?.element ?? null);
  }

  /** A page of history, newest first, above or below what is shown. */
  addPage(messages, side) {
    const fresh = messages.filter((message) => !this.find(message.id)).reverse();
    for (const message of messages) this.#learn(message.segment);
    const views = fresh.map((message) => (message.role === "user" ? new SaidView(message) : ReplyView.of(message)));
    const fragment = document.createDocumentFragment();
    fragment.append(...views.map((view) => view.element));
    if (side === "above") {
      this.#views.unshift(...views);
      this.#list.prepend(fragment);
    } else {
      this.#views.push(...views);
      this.#list.append(fragment);
    }
    for (const message of fresh) this.#noteUnanswered(message);
    this.#redraw();
    return views.length;
  }

  /** Drop views on one side until `most` are left, as long as they are far: `isFar(element)`. */
  trim(side, most, isFar) {
    const isAbove = side === "above";
    let count = 0;
    while (this.#views.length - count > most) {
      const view = isAbove ? this.#views[count] : this.#views.at(-1 - count);
      if (!isFar(view.element) || view.element.querySelector(".said--editing")) break;
      count += 1;
    }
    if (!count) return;
    const gone = isAbove ? this.#views.splice(0, count) : this.#views.splice(-count);
    if (isAbove) this.reachesStart = false;
    else this.#leaveEnd(gone);
    const hadFocus = gone.some((view) => view.element.contains(document.activeElement));
    for (const view of gone) view.element.remove();
    if (hadFocus) this.#list.closest("[tabindex]").focus({ preventScroll: true });
    this.#redraw();
  }

  #leaveEnd(gone) {
    if (this.#reachesEnd) this.#offstage = gone.find((view) => view.isWriting) ?? this.#offstage;
    this.#reachesEnd = false;
  }

  /** Messages that were deleted, here or on another page. */
  remove(ids, turns = []) {
    const gone = this.#views.filter((view) => (view.message ? ids.includes(view.message.id) : turns.includes(view.turn)));
    this.#drop(gone);
    this.#later = this.#later.filter((message) => !ids.includes(message.id));
  }

  /** Whether anything off the record is on the page. */
  get hasVeiled() {
    return this.#views.some((view) => view.isVeiled) || this.#later.some((message) => message.is_off_record);
  }

  /** What was said off the record is erased. */
  removeVeiled() {
    this.#drop(this.#views.filter((view) => view.isVeiled));
    this.#later = this.#later.filter((message) => !message.is_off_record);
    if (this.#offstage?.isVeiled) this.#offstage = null;
  }

  #drop(gone) {
    for (const view of gone) view.element.remove();
    this.#views = this.#views.filter((view) => !gone.includes(view));
    if (gone.length) this.#redraw();
  }

  /** Memories that were forgotten no longer stand under answers. */
  forgetMemories(ids) {
    for (const view of this.#views) view.forgetMemories?.(ids);
  }

  clear() {
    this.#offstage = this.#views.find((view) => view.isWriting) ?? this.#offstage;
    this.#views = [];
    this.#list.replaceChildren();
    this.#redraw();
  }

  /** A segment came to rest: its title appears, here and in what is loaded later. */
  learnSegment(segment) {
    this.#learn(segment);
    this.#redraw();
  }

  #learn(segment) {
    if (segment) this.#segments.set(segment.id, { ...this.#segments.get(segment.id), ...segment });
  }

  #redraw() {
    let previous = null;
    for (const view of this.#views) {
      if (!view.message) continue;
      const key = this.#dividerKey(view.message, previous);
      if (view.element.dataset.divider !== key.text) {
        view.element.dataset.divider = key.text;
        view.setDivider(key.text ? divider(key) : null);
      }
      previous = view.message;
    }
    this.#redrawRest(previous);
  }

  #dividerKey(message, previous) {
    const date = new Date(message.created_at);
    const isNewDay = !previous || dayKey(new Date(previous.created_at)) !== dayKey(date);
    const isNewSegment = previous ? previous.segment?.id !== message.segment?.id : this.reachesStart;
    const segment = this.#segments.get(message.segment?.id);
    const title = isNewSegment ? (segment?.title ?? "") : "";
    const day = isNewDay || title ? dayLabel(date) : "";
    const plain = isNewSegment && !title && !day && Boolean(previous);
    return { title, day, plain, text: [title, day, plain ? "·" : ""].filter(Boolean).join("|") };
  }

  #redrawRest(last) {
    const segment = this.#segments.get(last?.segment?.id);
    const rests = segment?.status === "collapsed" && this.#reachesEnd;
    this.#rest.hidden = !rests;
    if (rests) this.#rest.textContent = segment.title ? `“${segment.title}” has come to rest, and is remembered.` : "This has come to rest, and is remembered.";
    this.#rested(rests ? segment : null);
  }
}
