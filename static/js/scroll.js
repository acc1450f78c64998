// Scrolling that never jumps: it follows the end only while the person is at the end.

const NEAR_PX = 48;

export class Scroll {
  #box;
  #pill;
  #isFollowing = true;
  #top = 0; // where it stood when it was last looked at
  #unseen = false;
  #hasEnd;

  /**
   * `content` is watched for growth; `pill` is the button that leads back to the end; `hasEnd()`
   * tells whether the newest message is on the page: there is nothing to follow elsewhere.
   */
  constructor({ box, content, pill, hasEnd }) {
    this.#box = box;
    this.#pill = pill;
    this.#hasEnd = hasEnd;
    box.addEventListener("scroll", () => this.#look(), { passive: true });
    const follow = () => (this.#isFollowing ? this.#jump() : this.#look());
    new ResizeObserver(follow).observe(content);
    new ResizeObserver(follow).observe(box);
    pill.addEventListener("click", () => this.toEnd({ smooth: true }));
  }

  get isFollowing() {
    return this.#isFollowing;
  }

  #distance() {
    return this.#box.scrollHeight - this.#box.clientHeight - this.#box.scrollTop;
  }

  #jump() {
    this.#box.scrollTop = this.#box.scrollHeight;
    this.#top = this.#box.scrollTop;
  }

  #look() {
    const distance = this.#distance();
    // What grew since the last jump is jumped to next; only who goes up stops following.
    const wentUp = this.#box.scrollTop < this.#top - 1;
    this.#top = this.#box.scrollTop;
    this.#isFollowing = this.#hasEnd() && ((this.#isFollowing && !wentUp) || distance < NEAR_PX);
    if (this.#isFollowing) this.#unseen = false;
    this.#pill.hidden = this.#isFollowing || (this.#hasEnd() && !this.#unseen && distance < this.#box.clientHeight);
    this.#pill.querySelector("span").textContent = this.#unseen ? "New messages" : "To the end";
  }

  /** Something new stands at the end: say so, unless it is in view. */
  noteNew() {
    if (this.#isFollowing) return;
    this.#unseen = true;
    this.#look();
  }

  toEnd({ smooth = false } = {}) {
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#unseen = false;
    if (smooth && !isCalm && this.#distance() < 4 * this.#box.clientHeight) {
      this.#box.scrollTo({ top: this.#box.scrollHeight, behavior: "smooth" });
      return;
    }
    this.#isFollowing = true;
    this.#jump();
    this.#look();
  }

  /** Run `change` (which adds things above) and keep what is in view where it is. */
  keep(anchor, change) {
    const before = anchor?.getBoundingClientRect().top;
    change();
    if (anchor?.isConnected) this.#box.scrollTop += anchor.getBoundingClientRect().top - before;
  }

  show(element, block = "center") {
    this.#isFollowing = false;
    element.scrollIntoView({ block });
    this.#look();
  }
}
