// Off the record: the switch in the composer, the line above it, and what goes when the veil lifts.
import { del, get, post } from "mira/api";
import { clock } from "mira/dates";
import { toast } from "mira/toast";

const LATE_MS = 90_000; // after the hour the server lifts it within a minute; then it is asked

export class Veil {
  #form;
  #button;
  #line;
  #dialog;
  #thread;
  #announce;
  #timer = 0;
  #state = { is_drawn: false, lifts_at: null };

  /** `state` is that of GET veil/. */
  constructor({ form, line, dialog, thread, state, announce }) {
    this.#announce = announce;
    this.#form = form;
    this.#button = form.querySelector("[data-veil]");
    this.#line = line;
    this.#dialog = dialog;
    this.#thread = thread;
    this.#button.addEventListener("click", () => (this.isDrawn ? this.#ask() : this.#draw()));
    line.querySelector("[data-veil-lift]").addEventListener("click", () => this.#ask());
    dialog.addEventListener("close", () => {
      if (dialog.returnValue === "lift") this.#lift();
      dialog.returnValue = "";
    });
    this.learn(state);
  }

  get isDrawn() {
    return this.#state.is_drawn;
  }

  /** How it stands now, as this page or another one changed it. */
  learn(state) {
    const wasDrawn = this.isDrawn;
    this.#state = state;
    const { is_drawn: isDrawn, lifts_at: liftsAt } = state;
    this.#form.classList.toggle("composer--veiled", isDrawn);
    this.#button.setAttribute("aria-pressed", String(isDrawn));
    this.#form.querySelector("textarea").placeholder = isDrawn ? "Off the record" : "Write to MIRA";
    this.#line.hidden = !isDrawn;
    const words = isDrawn ? `Off the record. Nothing is remembered; all of it is erased at ${clock(new Date(liftsAt))}.` : "";
    this.#line.querySelector("[data-veil-words]").textContent = words;
    if (isDrawn && !wasDrawn) this.#announce(words);
    clearTimeout(this.#timer);
    if (isDrawn) this.#timer = setTimeout(() => this.refresh(), Math.max(0, new Date(liftsAt) - Date.now()) + LATE_MS);
    else this.#thread.removeVeiled();
  }

  /** Ask the server: a notice may have been missed, and each message puts the end off. */
  async refresh() {
    try {
      this.learn(await get("/api/v1/veil/"));
    } catch {
      // Asked again at the next reconnect or message.
    }
  }

  async #draw() {
    try {
      this.learn(await post("/api/v1/veil/"));
      this.#form.querySelector("textarea").focus();
    } catch (error) {
      toast(error.message, { kind: error.status === 409 ? "info" : "bad" });
    }
  }

  /** Erasing is for good, so it is asked about where there is something to erase. */
  #ask() {
    if (this.#thread.hasVeiled) this.#dialog.showModal();
    else this.#lift();
  }

  async #lift() {
    try {
      this.learn(await del("/api/v1/veil/"));
      this.#button.focus({ preventScroll: true }); // the line with the other button is gone
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  }
}
