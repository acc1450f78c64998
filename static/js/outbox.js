// Messages on their way: shown at once, kept on this device until the server has them.
import { request } from "mira/api";
import { fileList } from "mira/attachments";
import { h, icon } from "mira/dom";
import { saidText } from "mira/message";

const ANSWER_MS = 8000; // the server acknowledges at once; after this the other way is tried
const FRESH_MS = 5 * 60_000; // what is older is not sent without being asked for

function uuid() {
  // randomUUID needs https; a self-hosted server on the home network may not have it.
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

const fileIds = (entry) => (entry.files ?? []).map((file) => file.id);

export class Outbox {
  #list;
  #key;
  #entries = [];
  #socket;
  #turns;
  #onEvent;
  #onEdit;
  #onChange;
  #timers = new Map();

  /** `onEvent` takes events that come by HTTP; `onEdit(text, files)` puts them back into the composer. */
  constructor({ list, userId, socket, turns, onEvent, onEdit, onChange }) {
    this.#list = list;
    this.#key = `mira.outbox.${userId}`;
    this.#socket = socket;
    this.#turns = turns;
    this.#onEvent = onEvent;
    this.#onEdit = onEdit;
    this.#onChange = onChange;
    this.#entries = this.#stored().map((entry) => {
      const isFresh = Date.now() - entry.at < FRESH_MS;
      if (entry.state === "unsent" || isFresh) return { ...entry, state: entry.state === "unsent" ? "unsent" : "waiting" };
      return { ...entry, state: "unsent", why: "This was not sent." };
    });
    window.addEventListener("storage", (event) => event.key === this.#key && this.#mirror());
    this.#draw();
  }

  get isEmpty() {
    return this.#entries.length === 0;
  }

  #stored() {
    try {
      return JSON.parse(localStorage.getItem(this.#key) ?? "[]");
    } catch {
      return [];
    }
  }

  #save() {
    try {
      if (this.#entries.length) localStorage.setItem(this.#key, JSON.stringify(this.#entries));
      else localStorage.removeItem(this.#key);
    } catch {
      // Storage is off or full: the message is still on this page.
    }
    this.#draw();
    this.#onChange();
  }

  /** Another page of this person delivered or discarded something. */
  #mirror() {
    const there = new Set(this.#stored().map((entry) => entry.id));
    this.#entries = this.#entries.filter((entry) => there.has(entry.id));
    this.#draw();
    this.#onChange();
  }

  /** Keep a new message and send it as soon as that is possible. */
  add(text, files = [], { offRecord = false } = {}) {
    this.#entries.push({ id: uuid(), text, files, offRecord, at: Date.now(), state: "waiting" });
    this.#save();
    this.flush();
  }

  /** Send what waits, oldest first; one turn runs at a time. */
  flush() {
    if (this.#turns.running || this.#entries.some((entry) => entry.state === "sending")) return;
    const next = this.#entries.find((entry) => entry.state === "waiting");
    if (next) this.#deliver(next);
  }

  #deliver(entry) {
    const frame = { type: "send", text: entry.text, client_id: entry.id, attachments: fileIds(entry), off_record: Boolean(entry.offRecord) };
    // What was tried before may have arrived. The line says nothing about a message it knows; HTTP does.
    if (entry.tried && this.#socket.isOpen) {
      this.#set(entry, "sending");
      this.#deliverByHttp(entry);
    } else if (this.#socket.send(frame)) {
      entry.tried = true;
      this.#set(entry, "sending");
      this.#timers.set(entry.id, setTimeout(() => this.#deliverByHttp(entry), ANSWER_MS));
    } else if (navigator.onLine && this.#socket.failures > 1) {
      this.#set(entry, "sending");
      this.#deliverByHttp(entry);
    } else this.#draw();
  }

  /** The same message, the same client_id, by the other door: the server takes it once. */
  async #deliverByHttp(entry) {
    try {
      const response = await request("/api/v1/chat/", {
        method: "POST",
        body: { message: entry.text, client_id: entry.id, attachments: fileIds(entry), off_record: Boolean(entry.offRecord) },
        accept: "text/event-stream",
      });
      this.accepted(entry.id);
      await readEvents(response, this.#onEvent);
    } catch (error) {
      if (!this.#entries.includes(entry)) return;
      if (error.status) this.refused(entry.id, error.message);
      else this.#set(entry, "waiting");
    }
  }

  /** The server has it. */
  accepted(clientId) {
    clearTimeout(this.#timers.get(clientId));
    const kept = this.#entries.filter((entry) => entry.id !== clientId);
    if (kept.length === this.#entries.length) return;
    this.#entries = kept;
    this.#save();
  }

  refused(clientId, why) {
    clearTimeout(this.#timers.get(clientId));
    const entry = this.#entries.find((candidate) => candidate.id === clientId);
    if (entry) this.#set(entry, "unsent", why);
  }

  /** The line went down: what was under way waits, and goes out again with the same id. */
  lineLost() {
    for (const entry of this.#entries.filter(({ state }) => state === "sending")) {
      clearTimeout(this.#timers.get(entry.id));
      this.#set(entry, "waiting");
    }
  }

  /** The turn before failed: nothing more is sent without being asked for. */
  hold() {
    for (const entry of this.#entries.filter(({ state }) => state === "waiting")) {
      this.#set(entry, "unsent", "Not sent, because the answer before it failed.");
    }
  }

  #set(entry, state, why = "") {
    Object.assign(entry, { state, why });
    this.#save();
  }

  #discard(entry) {
    this.#entries = this.#entries.filter((other) => other !== entry);
    this.#save();
  }

  /** What waits tells for what. */
  redraw() {
    if (!this.isEmpty) this.#draw();
  }

  #draw() {
    this.#list.replaceChildren(...this.#entries.map((entry) => this.#element(entry)));
  }

  #element(entry) {
    const foot = h("footer", { class: "message__foot" }, h("span", { text: this.#stateText(entry) }));
    if (entry.state !== "sending") {
      const button = (label, name, run) => h("button", { class: "button button--small", type: "button", on: { click: run } }, name ? icon(name) : null, label);
      const again = () => {
        this.#set(entry, "waiting");
        this.flush();
      };
      const edit = () => {
        this.#discard(entry);
        this.#onEdit(entry.text, entry.files);
      };
      if (entry.state === "unsent") foot.append(button("Send again", "retry", again));
      foot.append(button("Edit", null, edit), button("Discard", null, () => this.#discard(entry)));
    }
    const article = h("article", { class: `message message--user message--${entry.state}${entry.offRecord ? " message--veiled" : ""}`, "aria-label": entry.offRecord ? "You, off the record, not sent yet" : "You, not sent yet" }, h("div", { class: "said" }, fileList(entry.files), saidText(entry.text)), foot);
    return h("li", { class: "entry", data: { clientId: entry.id } }, article);
  }

  #stateText(entry) {
    if (entry.state === "sending") return "Sending";
    if (entry.state === "unsent") return entry.why || "This was not sent.";
    return this.#turns.running ? "Goes out after this answer" : "Waits for the connection";
  }
}

/** Server-sent events of a response: one JSON event in each `data:` block. */
async function readEvents(response, onEvent) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += value.replaceAll("\r\n", "\n");
    const blocks = buffer.split("\n\n");
    buffer = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n").filter((line) => line.startsWith("data:"));
      if (lines.length) onEvent(JSON.parse(lines.map((line) => line.slice(5)).join("\n")));
    }
  }
}
