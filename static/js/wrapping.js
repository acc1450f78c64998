// Wrapping up the open part of the conversation, and taking that back for ten minutes.
import { post } from "mira/api";
import { clock } from "mira/dates";
import { toast } from "mira/toast";

const kindOf = (error) => (error.status === 409 ? "info" : "bad");

export class Wrapping {
  #box;
  #thread;
  #segment = null;
  #timer = 0;

  /** `box` tells until when the last part can be opened again; `dialog` asks before it is closed. */
  constructor({ button, dialog, box, thread, toEnd }) {
    this.#box = box;
    this.#thread = thread;
    button.addEventListener("click", () => {
      button.closest("[data-menu]").open = false;
      dialog.showModal();
    });
    dialog.addEventListener("close", async () => {
      const isWished = dialog.returnValue === "wrap";
      dialog.returnValue = "";
      if (isWished && (await this.#wrapUp())) toEnd();
    });
    box.querySelector("button").addEventListener("click", () => this.#reopen());
  }

  /** The part that rests at the end of the page; null where none does. */
  show(segment) {
    clearTimeout(this.#timer);
    const leftMs = segment?.reopenable_until ? new Date(segment.reopenable_until) - Date.now() : 0;
    this.#segment = leftMs > 0 ? segment : null;
    this.#box.hidden = !this.#segment;
    if (!this.#segment) return;
    this.#box.querySelector("span").textContent = `Until ${clock(new Date(segment.reopenable_until))} you can take this back and go on where you were.`;
    this.#timer = setTimeout(() => this.show(null), leftMs);
  }

  async #wrapUp() {
    try {
      const segment = await post("/api/v1/segments/collapse/");
      this.#thread.learnSegment(segment);
      if (segment.collapse_asked_at) toast("This part is wrapped up once the answer is there.");
      else if (segment.status === "collapsed") toast("This part is wrapped up, and remembered.", { kind: "good" });
      else toast("This part is being wrapped up.");
      return true;
    } catch (error) {
      toast(error.message, { kind: kindOf(error) });
      return false;
    }
  }

  async #reopen() {
    const button = this.#box.querySelector("button");
    button.disabled = true;
    try {
      this.#thread.learnSegment(await post(`/api/v1/segments/${this.#segment.id}/reopen/`));
      toast("This part goes on. What was made of it is withdrawn.", { kind: "good" });
      document.querySelector("#composer-text").focus();
    } catch (error) {
      toast(error.message, { kind: kindOf(error) });
    } finally {
      button.disabled = false;
    }
  }
}
