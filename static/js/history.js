// The past, page by page: upwards for ever, downwards when the page was opened somewhere in it.
import { get } from "mira/api";
import { h } from "mira/dom";
import { prepare } from "mira/render";

const PAGE = 50;
const AHEAD = "900px"; // how far before the edge the next page is fetched

function local(link) {
  if (!link) return null;
  const url = new URL(link, location.href);
  return url.pathname + url.search;
}

export class History {
  #thread;
  #scroll;
  #top;
  #bottom;
  #older = null;
  #newer = null;
  #busy = false;
  #watcher;

  constructor({ thread, scroll, box, top, bottom }) {
    this.#thread = thread;
    this.#scroll = scroll;
    this.#top = top;
    this.#bottom = bottom;
    this.#watcher = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (isIntersecting) this.#more(target === top ? "above" : "below");
        }
      },
      { root: box, rootMargin: AHEAD },
    );
  }

  /** False while newer messages than the shown ones are not loaded. */
  get reachesEnd() {
    return this.#newer === null;
  }

  /** The first page: the newest, or the one around the message `at`. Throws ApiError. */
  async open(at = null) {
    const page = await this.#fetch(at ? `/api/v1/messages/?page_size=${PAGE}&at=${encodeURIComponent(at)}` : `/api/v1/messages/?page_size=${PAGE}`);
    this.#older = local(page.next);
    this.#newer = at ? local(page.previous) : null;
    this.#thread.reachesStart = !this.#older;
    this.#thread.addPage(page.results, "above");
    // The first layout settles before the edges are watched, or every page would be fetched at once.
    requestAnimationFrame(() => this.#watch());
  }

  /** The newest page again, merged into what is shown: what was missed while the line was down. */
  async catchUp() {
    if (!this.reachesEnd) return;
    const page = await this.#fetch(`/api/v1/messages/?page_size=${PAGE}`);
    const overlaps = page.results.some((message) => this.#thread.find(message.id));
    if (!overlaps && !this.#thread.isEmpty && page.results.length) {
      this.#thread.clear();
      this.#older = local(page.next);
      this.#thread.reachesStart = !this.#older;
    }
    for (const message of page.results.toReversed()) this.#thread.upsert(message);
  }

  async #fetch(path) {
    const page = await get(path);
    await prepare(page.results.map((message) => message.text));
    return page;
  }

  #watch() {
    this.#watcher.disconnect();
    if (this.#older) this.#watcher.observe(this.#top);
    if (this.#newer) this.#watcher.observe(this.#bottom);
  }

  async #more(side) {
    const path = side === "above" ? this.#older : this.#newer;
    if (this.#busy || !path) return;
    this.#busy = true;
    const edge = side === "above" ? this.#top : this.#bottom;
    edge.replaceChildren(h("span", { class: "edge__busy", text: side === "above" ? "Looking further back" : "Coming back to now" }));
    try {
      const page = await this.#fetch(path);
      edge.replaceChildren();
      if (side === "above") {
        this.#older = local(page.next);
        this.#thread.reachesStart = !this.#older;
        const anchor = this.#thread.firstElement;
        this.#scroll.keep(anchor, () => this.#thread.addPage(page.results, "above"));
      } else {
        this.#newer = local(page.previous);
        this.#thread.addPage(page.results, "below");
      }
    } catch (error) {
      const again = h("button", { class: "button button--small", type: "button", text: "Load more" });
      again.addEventListener("click", () => this.#more(side));
      edge.replaceChildren(h("span", { text: error.message }), again);
      this.#busy = false;
      this.#watcher.disconnect();
      return;
    }
    this.#busy = false;
    this.#watch();
  }
}
