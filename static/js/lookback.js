// Looking back: search in what was said, go to a day, and the chapters by month.
import { get } from "mira/api";
import { dayLabel, fullDate, monthLabel } from "mira/dates";
import { h } from "mira/dom";
import { START } from "mira/history";

const PAGE = 50;
const WAIT_MS = 250; // after the last key, before what was typed is looked for

const place = (at) => `/?at=${encodeURIComponent(at)}`;

/** `**hits**` of a highlight as marks; all else stays text. */
function marked(text) {
  return text.split("**").map((part, index) => (index % 2 ? h("mark", { text: part }) : part));
}

export class LookBack {
  #dialog;
  #list;
  #found;
  #status;
  #more;
  #next = null; // address of the next page of chapters
  #month = "";
  #isBusy = false;
  #asked = "";
  #timer = 0;

  /** `go(at)` and `toNow()` jump in the conversation. */
  constructor({ dialog, opener, go, toNow }) {
    const find = (name) => dialog.querySelector(`[data-lookback-${name}]`);
    this.#dialog = dialog;
    [this.#list, this.#found, this.#status, this.#more] = ["chapters", "found", "status", "more"].map(find);
    opener.addEventListener("click", () => this.open());
    find("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#search();
    });
    find("search").addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(), WAIT_MS);
    });
    find("day").addEventListener("submit", (event) => {
      event.preventDefault();
      const { value } = event.target.elements.day;
      if (value) this.#leave(() => go(value));
    });
    find("start").addEventListener("click", () => this.#leave(() => go(START)));
    find("now").addEventListener("click", () => this.#leave(toNow));
    this.#more.addEventListener("click", () => this.#page());
    new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && this.#page(), { root: dialog, rootMargin: "400px" }).observe(this.#more);
  }

  open() {
    if (this.#dialog.open) return;
    this.#dialog.showModal();
    this.#dialog.querySelector('input[type="search"]').focus();
    this.#renew();
  }

  close() {
    if (this.#dialog.open) this.#dialog.close();
  }

  #leave(jump) {
    this.close();
    jump();
  }

  /** The chapters anew: something may have come to rest since they were shown. */
  #renew() {
    this.#list.replaceChildren();
    this.#month = "";
    this.#next = `/api/v1/segments/?page_size=${PAGE}`;
    this.#page();
  }

  async #page() {
    if (this.#isBusy || !this.#next) return;
    this.#isBusy = true;
    try {
      const page = await get(this.#next);
      const next = page.next && new URL(page.next, location.href);
      this.#next = next && next.pathname + next.search;
      this.#more.hidden = !next;
      this.#list.append(...page.results.flatMap((segment) => this.#chapter(segment)));
      if (!this.#list.children.length) this.#list.append(h("p", { class: "lookback__none", text: "What we talk about shows here by its title, once it has come to rest." }));
    } catch (error) {
      this.#say(error.message);
    } finally {
      this.#isBusy = false;
    }
  }

  #chapter(segment) {
    const date = new Date(segment.opened_at);
    const title = segment.title || (segment.status === "active" ? "Now" : "Without a title yet");
    const count = segment.message_count;
    const link = h("a", { class: "chapter", href: place(segment.opened_at) }, h("span", { class: "chapter__title", text: title }), h("span", { class: "chapter__when" }, h("time", { datetime: segment.opened_at, title: fullDate(date), text: dayLabel(date) }), ` · ${count === 1 ? "1 message" : `${count} messages`}`));
    const month = monthLabel(date);
    const heading = month === this.#month ? [] : [h("h3", { class: "lookback__month", text: month })];
    this.#month = month;
    return [...heading, link];
  }

  async #search() {
    clearTimeout(this.#timer);
    const words = this.#dialog.querySelector('input[type="search"]').value.trim();
    if (words === this.#asked) return;
    this.#asked = words;
    if (words.length < 2) {
      this.#found.hidden = true;
      this.#say("");
      return;
    }
    this.#say("Looking");
    try {
      const found = await get(`/api/v1/messages/search/?${new URLSearchParams({ q: words })}`);
      if (words === this.#asked) this.#show(found);
    } catch (error) {
      if (words !== this.#asked) return;
      this.#asked = "";
      this.#say(error.message);
    }
  }

  #show({ results, segments }) {
    const messages = results.map(({ message, highlight }) => this.#hit(message, highlight));
    const chapters = segments.map((segment) => h("li", {}, h("a", { class: "hit", href: place(segment.opened_at) }, h("span", { class: "hit__who", text: `${segment.title || "A part of the conversation"} · ${dayLabel(new Date(segment.opened_at))}` }), h("span", { class: "hit__text", text: segment.precis }))));
    this.#found.replaceChildren(...messages, ...chapters);
    this.#found.hidden = false;
    const count = messages.length + chapters.length;
    this.#say(count === 0 ? "Nothing of it was said here." : count === 1 ? "One place" : `${count} places`);
  }

  #hit(message, highlight) {
    const date = new Date(message.created_at);
    const who = message.role === "user" ? "You" : "MIRA";
    return h("li", {}, h("a", { class: "hit", href: place(message.id) }, h("span", { class: "hit__who" }, `${who} · `, h("time", { datetime: message.created_at, title: fullDate(date), text: dayLabel(date) })), h("span", { class: "hit__text" }, marked(highlight))));
  }

  #say(text) {
    this.#status.textContent = text;
  }
}
