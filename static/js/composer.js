// The writing place: grows with the text, keeps a draft, takes files, sends by Enter (on touch by
// the button).
import { Attachments } from "mira/attachments";

const SAVE_AFTER_MS = 250;
const LONG_CHARS = 24; // what no longer fits beside the buttons on a phone

export class Composer {
  #form;
  #input;
  #send;
  #stop;
  #key;
  #timer = 0;
  #on;
  #isRunning = false;
  #files;
  #sendsWhenReady = false; // sent was wished for while a file was still on its way

  /** `area` is where files can be dropped; `on`: send(text, files), stop(). */
  constructor({ form, area, userId, ...on }) {
    this.#form = form;
    this.#input = form.querySelector("textarea");
    this.#send = form.querySelector("[data-send]");
    this.#stop = form.querySelector("[data-stop]");
    this.#key = `mira.draft.${userId}`;
    this.#on = on;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#stop.addEventListener("click", () => this.#on.stop());
    this.#input.addEventListener("input", () => this.#changed());
    this.#input.addEventListener("keydown", (event) => this.#onKey(event));
    document.addEventListener("keydown", (event) => this.#onGlobalKey(event));
    window.addEventListener("pagehide", () => this.#saveDraft());
    this.#files = new Attachments({ form, area, onChange: () => this.#filesChanged() });
    this.#restore();
  }

  get text() {
    return this.#input.value;
  }

  /** Put a text into the field, before what is already there, and files into the tray. */
  insert(text, files = []) {
    const rest = this.#input.value.trim();
    this.#input.value = rest ? `${text}\n\n${rest}` : text;
    this.#files.put(files);
    this.#changed();
    this.focus();
  }

  focus() {
    this.#input.focus({ preventScroll: true });
    this.#input.setSelectionRange(this.#input.value.length, this.#input.value.length);
  }

  setRunning(isRunning) {
    this.#isRunning = isRunning;
    this.#show();
  }

  #submit() {
    const text = this.#input.value.trim();
    if (!text && this.#files.isEmpty) return;
    this.#sendsWhenReady = this.#files.isBusy;
    if (this.#sendsWhenReady) {
      this.#files.say("It goes out once the files are here.");
      return;
    }
    const files = this.#files.take();
    this.#input.value = "";
    this.#changed();
    this.#saveDraft();
    this.#on.send(text, files);
  }

  #filesChanged() {
    if (this.#sendsWhenReady && !this.#files.isBusy) {
      this.#sendsWhenReady = false;
      if (!this.#files.hasFailed) this.#submit();
    }
    if (this.#files) this.#show();
  }

  #changed() {
    this.#sendsWhenReady = false;
    this.#fit();
    this.#show();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#saveDraft(), SAVE_AFTER_MS);
  }

  #show() {
    const hasText = this.#input.value.trim() !== "" || !this.#files.isEmpty;
    this.#send.disabled = !hasText;
    this.#stop.hidden = !this.#isRunning;
    this.#send.hidden = this.#isRunning && !hasText;
  }

  /** On a phone a longer text has a row of its own, until it is gone: it does not jump back and forth. */
  #widen() {
    const text = this.#input.value;
    if (!text) this.#form.classList.remove("composer--long");
    else if (text.length > LONG_CHARS || text.includes("\n")) this.#form.classList.add("composer--long");
  }

  #fit() {
    this.#widen();
    if (CSS.supports("field-sizing", "content")) return;
    this.#input.style.height = "auto";
    this.#input.style.height = `${this.#input.scrollHeight}px`;
  }

  #onKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    // On a touch keyboard Enter is the only way to a new line; the button sends.
    const isTouch = matchMedia("(hover: none) and (pointer: coarse)").matches;
    if (isTouch && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.#submit();
  }

  #onGlobalKey(event) {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.key === "Escape" && this.#isRunning && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      this.#on.stop();
    }
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key === "/" && isPlain && !event.target.closest("input, textarea, select, [contenteditable]")) {
      event.preventDefault();
      this.focus();
    }
  }

  #saveDraft() {
    clearTimeout(this.#timer);
    try {
      if (this.#input.value.trim()) localStorage.setItem(this.#key, this.#input.value);
      else localStorage.removeItem(this.#key);
    } catch {
      // Storage is off: the draft lives as long as the page.
    }
  }

  #restore() {
    try {
      this.#input.value ||= localStorage.getItem(this.#key) ?? "";
    } catch {
      // As above.
    }
    this.#fit();
    this.#show();
  }
}
