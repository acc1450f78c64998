// The live line: a WebSocket that comes back by itself and asks for what it missed.

const FIRST_DELAY_MS = 800;
const LONGEST_DELAY_MS = 30_000;
const STALE_AFTER_HIDDEN_MS = 60_000; // a laptop that slept often holds a dead connection
const REFUSED = new Set([4401, 4403, 1008]);

export class Socket {
  #url;
  #socket = null;
  #attempt = 0;
  #timer = 0;
  #hiddenAt = 0;
  #resumeFrom;
  #listeners;
  state = "connecting"; // connecting | open | closed | refused
  failures = 0;

  /**
   * `resumeFrom()` gives the id of the last event seen. `listeners`: onEvent(event), onState(state),
   * onOpen(isAgain).
   */
  constructor(path, { resumeFrom, ...listeners }) {
    const url = new URL(path, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.#url = url.href;
    this.#resumeFrom = resumeFrom;
    this.#listeners = listeners;
    window.addEventListener("online", () => this.reconnect());
    window.addEventListener("offline", () => this.#drop());
    document.addEventListener("visibilitychange", () => this.#onVisibility());
    window.addEventListener("pageshow", (event) => event.persisted && this.reconnect());
  }

  get isOpen() {
    return this.state === "open";
  }

  connect() {
    clearTimeout(this.#timer);
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.addEventListener("open", () => {
      if (socket !== this.#socket) return;
      const isAgain = this.#attempt > 0;
      this.#attempt = 0;
      this.failures = 0;
      this.#become("open");
      this.send({ type: "resume", after: this.#resumeFrom() });
      this.#listeners.onOpen(isAgain);
    });
    socket.addEventListener("message", ({ data }) => {
      if (socket === this.#socket) this.#listeners.onEvent(JSON.parse(data));
    });
    socket.addEventListener("close", ({ code }) => {
      if (socket !== this.#socket) return;
      this.failures += 1;
      if (REFUSED.has(code)) this.#become("refused");
      else this.#later();
    });
  }

  /** Now instead of after the delay. */
  reconnect() {
    if (this.state === "refused") return;
    this.#attempt = Math.max(this.#attempt, 1);
    const old = this.#socket;
    this.#socket = null;
    old?.close();
    this.connect();
  }

  /** False when the line is down; nothing is queued here. */
  send(frame) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  #drop() {
    const old = this.#socket;
    this.#socket = null;
    old?.close();
    this.#later();
  }

  #later() {
    this.#become("closed");
    this.#attempt += 1;
    const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (this.#attempt - 1));
    // Jitter: a restarted server is not met by everybody at once.
    this.#timer = setTimeout(() => this.connect(), longest * (0.5 + Math.random() / 2));
  }

  #become(state) {
    this.state = state;
    this.#listeners.onState(state);
  }

  #onVisibility() {
    if (document.hidden) {
      this.#hiddenAt = Date.now();
      return;
    }
    const slept = this.#hiddenAt && Date.now() - this.#hiddenAt > STALE_AFTER_HIDDEN_MS;
    if (slept || this.state === "closed") this.reconnect();
  }
}
