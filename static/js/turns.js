// What happens during a turn: the events of conversations/events.py, applied to the thread.
import { get, post } from "mira/api";
import { restButton } from "mira/limits";
import { toast } from "mira/toast";

const SILENCE_MS = 20_000; // without an event for so long, the turn is asked how it is
const LAST = new Set(["turn.finished", "turn.stopped", "turn.failed"]);
const OPEN = new Set(["queued", "running"]);
const BROKEN = "The answer could not be written.";
const TOOLS = { memory_tool: "Looking into memory" };

/** Event ids are Redis stream ids, `milliseconds-sequence`. */
export function isLater(id, than) {
  const [ms, sequence = 0] = id.split("-").map(Number);
  const [thanMs, thanSequence = 0] = than.split("-").map(Number);
  return ms > thanMs || (ms === thanMs && sequence > thanSequence);
}

export class Turns {
  #thread;
  #on;
  #lastId;
  #watchdog = 0;
  #erased = null; // id of a turn whose veil was lifted while it was answered
  running = null; // id of the turn being answered

  /** `on`: veil(state), accepted(clientId, turn), refused(clientId, text), state(isRunning), grew(),
   * heard(text) that a screen reader shall say how a turn ended, ended(status), missed(edited) when the stream no longer holds what this page has not seen;
   * `edited` are ids of messages that were changed. */
  constructor({ thread, lastEventId, ...on }) {
    this.#thread = thread;
    this.#lastId = lastEventId || "0";
    this.#on = on;
  }

  get lastEventId() {
    return this.#lastId;
  }

  /** Events may come twice, by two ways, or again after a reconnect: each counts once. */
  take(event) {
    if (event.id) {
      if (!isLater(event.id, this.#lastId)) return;
      this.#lastId = event.id;
    }
    if (event.turn && event.turn === this.#erased) {
      if (LAST.has(event.type)) this.#end(event.turn, "stopped");
      return;
    }
    const apply = this.#events[event.type];
    if (!apply) return;
    apply(event);
    if (event.turn && event.turn === this.running) this.#watch();
  }

  #events = {
    "turn.started": ({ turn, client_id: clientId, message }) => {
      this.#on.accepted(clientId, turn);
      this.#thread.lastReply?.forbidRetry();
      this.#thread.upsert(message);
      this.#thread.replyOf(turn).begin();
      this.#thread.replyOf(turn).setVeiled(message.is_off_record);
      this.#run(turn);
      this.#on.grew();
    },
    "context.ready": ({ turn, surfaced }) => {
      const view = this.#live(turn);
      view?.setSurfaced(surfaced);
      view?.setWaiting("Finding the words");
    },
    "text.delta": ({ turn, text }) => {
      this.#live(turn)?.add(text);
      this.#on.grew();
    },
    "thinking.delta": ({ turn, text }) => this.#live(turn)?.addThought(text),
    "tool.started": ({ turn, name }) => this.#live(turn)?.setWaiting(TOOLS[name] ?? `Using ${name.replaceAll("_", " ")}`),
    "tool.finished": ({ turn, call, ok, summary }) => {
      const view = this.#live(turn);
      view?.addTool({ call, ok, summary });
      view?.setWaiting("Finding the words");
    },
    "turn.finished": ({ turn, message }) => {
      this.#thread.replyOf(turn).clearNote();
      this.#thread.upsert(message);
      if (message.is_cut) this.#on.heard("The answer reached its limit.");
      this.#end(turn, "done");
    },
    "turn.stopped": ({ turn, message }) => {
      if (message) this.#thread.upsert(message);
      this.#thread.replyOf(turn).setNote("Stopped here.", { retry: () => this.retry(turn) });
      this.#on.heard("Stopped here.");
      this.#end(turn, "stopped");
    },
    "turn.failed": ({ turn, error }) => {
      this.#showFailure(turn, error);
      this.#on.heard(error?.detail || BROKEN);
      this.#end(turn, "failed");
    },
    "segment.collapsed": ({ segment }) => this.#thread.learnSegment(segment),
    notice: ({ level, text, client_id: clientId, deleted = [], deleted_turns: turns = [], edited = [], forgotten = [], segment, veil }) => {
      if (segment) this.#thread.learnSegment(segment);
      if (veil) this.#unveil(veil, text);
      if (level === "resync") {
        this.#thread.remove(deleted, turns);
        this.#thread.forgetMemories(forgotten);
        this.#on.missed(edited);
      }
      else if (level === "veil") return;
      else if (clientId && level === "error") this.#on.refused(clientId, text);
      else toast(text, { kind: level === "error" ? "bad" : "info" });
    },
  };

  /** The veil was drawn or lifted; an answer that is still written under it is shown no more. */
  #unveil(veil, text) {
    if (!veil.is_drawn) {
      if (this.running && this.#thread.replyOf(this.running).isVeiled) this.#erased = this.running;
      toast(text);
    }
    this.#on.veil(veil);
  }

  /** The view of a turn that runs. A page that missed its start still shows what comes. */
  #live(turn) {
    if (!turn) return null;
    // After a break the whole answer may be here before the line has told how it was written.
    if (this.#thread.replyOf(turn).message) return null;
    if (this.running !== turn) this.#run(turn);
    return this.#thread.replyOf(turn);
  }

  #run(turn) {
    this.running = turn;
    this.#on.state(true);
    this.#watch();
  }

  /** The page was made while this turn ran: nothing else goes out before its events are here. */
  expect(turn) {
    this.#thread.replyOf(turn).begin();
    this.#run(turn);
  }

  #end(turn, status) {
    if (this.running === turn) {
      this.running = null;
      clearTimeout(this.#watchdog);
      this.#on.state(false);
    }
    this.#on.ended(status);
    this.#on.grew();
  }

  #watch() {
    clearTimeout(this.#watchdog);
    const turn = this.running;
    this.#watchdog = setTimeout(async () => {
      if (this.running !== turn) return;
      await this.settle(turn);
      if (this.running === turn) this.#watch();
    }, SILENCE_MS);
  }

  #showFailure(turn, error) {
    const retry = error?.retryable ? () => this.retry(turn) : null;
    const button = error?.code === "model_context_too_long" ? restButton() : null;
    this.#thread.replyOf(turn).setNote(error?.detail || BROKEN, { kind: "bad", retry, button });
  }

  /** Ask how a turn is, and show it if it is over. Used where an event may have been missed. */
  async settle(turn) {
    let state;
    try {
      state = await get(`/api/v1/turns/${turn}/`);
    } catch {
      return; // Asked again by the watchdog, or at the next reconnect.
    }
    if (OPEN.has(state.status)) {
      if (this.running !== turn) {
        this.#thread.replyOf(turn).begin();
        this.#run(turn);
      }
      return;
    }
    if (state.reply) this.#thread.upsert(state.reply);
    const view = state.status === "done" ? null : this.#thread.replyOf(turn);
    if (state.status === "stopped") view.setNote("Stopped here.", { retry: () => this.retry(turn) });
    else if (view) this.#showFailure(turn, state.error);
    if (this.running === turn) this.#end(turn, state.status);
  }

  /** After a page was loaded or came back: is the newest turn whole? */
  async settleLast() {
    if (this.running) return this.settle(this.running);
    if (!this.#thread.reachesEnd) return undefined;
    const last = this.#thread.last?.message;
    if (last?.turn && (last.role === "user" || last.is_partial)) return this.settle(last.turn);
    return undefined;
  }

  async retry(turn) {
    try {
      await post(`/api/v1/turns/${turn}/retry/`);
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  }

  /** `sendFrame` is the live line; HTTP stands in where it is down. */
  async stop(sendFrame) {
    const turn = this.running;
    if (!turn) return;
    if (sendFrame({ type: "stop" })) return;
    try {
      await post(`/api/v1/turns/${turn}/stop/`);
      await this.settle(turn);
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  }
}
