// The past, page by page, in both directions. Only a window of it is on the page: what lies far from
// what is read is dropped and fetched again when it comes near.
import { get } from "mira/api";
import { h } from "mira/dom";
import { prepare } from "mira/render";

const PAGE = 50;
const AHEAD = "900px"; // how far before the edge the next page is fetched
const WINDOW = 200; // messages on the page at once …
const FAR_PX = 2400; // … but for those nearer than this to what is in view

/** Opens the thread at its very beginning. */
export const START = "start";

function address(query) {
  return `/api/v1/messages/?${new URLSearchParams({ page_size: PAGE, ...query })}`;
}

export class History {
  #thread;
  #scroll;
  #box;
  #edges;
  #visit = 0; // grows with every jump: what was on its way for the place before is dropped
  #busy = false;
  #watcher;

  constructor({ thread, scroll, box, top, bottom }) {
    this.#thread = thread;
    this.#scroll = scroll;
    this.#box = box;
    this.#edges = { above: top, below: bottom };
    this.#watcher = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (isIntersecting) this.#more(target === top ? "above" : "below");
        }
      },
      { root: box, rootMargin: AHEAD },
    );
  }

  /** False while newer messages than the shown ones are not on the page. */
  get reachesEnd() {
    return this.#thread.reachesEnd;
  }

  /**
   * Show the newest messages, those around `at` (a message's id, a date or time), or, at START, the
   * oldest. Resolves to the id of the message that was asked for, if any, or to null if another
   * jump overtook this one. `page` is that page if it is at hand. Throws ApiError.
   */
  async open(at = null, page = null) {
    const visit = ++this.#visit;
    const hadEnd = this.#thread.reachesEnd;
    this.#thread.reachesEnd = false; // what happens from now on is kept, and shown with the page
    try {
      page ??= await get(address(at === START ? { after: 0 } : at ? { at } : {}));
      await prepare(page.results.map((message) => message.text));
    } catch (error) {
      if (visit === this.#visit) this.#thread.reachesEnd = hadEnd;
      throw error;
    }
    if (visit !== this.#visit) return null;
    this.#replace(page);
    return page.at ?? (at === START ? (page.results.at(-1)?.id ?? null) : null);
  }

  #replace(page) {
    this.#watcher.disconnect();
    this.#busy = false;
    for (const edge of Object.values(this.#edges)) edge.replaceChildren();
    this.#thread.clear();
    this.#thread.reachesStart = !page.next;
    this.#thread.addPage(page.results, "above");
    this.#thread.reachesEnd = !page.previous;
    this.#spaceEdges();
    // The first layout settles before the edges are watched, or every page would be fetched at once.
    const visit = this.#visit;
    requestAnimationFrame(() => visit === this.#visit && this.#watch());
  }

  /** The newest page again, merged into what is shown: what was missed while the line was down. */
  async catchUp() {
    if (!this.reachesEnd) return;
    const visit = this.#visit;
    const page = await get(address({}));
    await prepare(page.results.map((message) => message.text));
    if (visit !== this.#visit || !this.reachesEnd) return;
    const overlaps = page.results.some((message) => this.#thread.find(message.id));
    if (!overlaps && !this.#thread.isEmpty && page.results.length) this.#replace(page);
    else for (const message of page.results.toReversed()) this.#thread.upsert(message);
  }

  /** Room for what an edge says while a page is on its way: nothing moves when it speaks. */
  #spaceEdges() {
    this.#edges.above.classList.toggle("edge--more", !this.#thread.reachesStart);
    this.#edges.below.classList.toggle("edge--more", !this.#thread.reachesEnd);
  }

  #watch() {
    this.#watcher.disconnect();
    if (!this.#thread.reachesStart) this.#watcher.observe(this.#edges.above);
    if (!this.#thread.reachesEnd) this.#watcher.observe(this.#edges.below);
  }

  async #more(side) {
    const isAbove = side === "above";
    if (this.#busy || this.#thread.isEmpty || (isAbove ? this.#thread.reachesStart : this.#thread.reachesEnd)) return;
    this.#busy = true;
    const visit = this.#visit;
    const edge = this.#edges[side];
    edge.replaceChildren(h("span", { class: "edge__busy", text: isAbove ? "Looking further back" : "Coming back to now" }));
    try {
      const { first, last } = this.#thread.positions;
      const page = await get(address(isAbove ? { before: first } : { after: last }));
      await prepare(page.results.map((message) => message.text));
      if (visit !== this.#visit) return;
      edge.replaceChildren();
      this.#add(side, page);
    } catch (error) {
      if (visit !== this.#visit) return;
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

  #add(side, page) {
    const isAbove = side === "above";
    const anchor = isAbove ? this.#thread.firstElement : this.#thread.lastElement;
    this.#scroll.keep(anchor, () => {
      if (isAbove) this.#thread.reachesStart = !page.next;
      this.#thread.addPage(page.results, side);
      if (!isAbove && !page.previous) this.#thread.reachesEnd = true;
      this.#spaceEdges();
    });
    const view = this.#box.getBoundingClientRect();
    const isFar = isAbove
      ? (element) => element.getBoundingClientRect().top > view.bottom + FAR_PX
      : (element) => element.getBoundingClientRect().bottom < view.top - FAR_PX;
    this.#scroll.keep(anchor, () => {
      this.#thread.trim(isAbove ? "below" : "above", WINDOW, isFar);
      this.#spaceEdges();
    });
  }
}
