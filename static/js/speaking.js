// What a screen reader hears of an answer that is being written: sentences, each once.

const SENTENCE_END = /[.!?…]+["'”’)\]]*(?=\s)/g;

function lastEnd(text) {
  let end = 0;
  for (const match of text.matchAll(SENTENCE_END)) end = match.index + match[0].length;
  return end;
}

export class Sentences {
  #say;
  #said = ""; // of the unfinished block

  constructor(say) {
    this.#say = say;
  }

  /** The unfinished block reads like this now: say the sentences that have come to their end. */
  grow(text) {
    // Markup that was understood anew changes what stood there: wait for the end of the block.
    if (!text.startsWith(this.#said)) return;
    const end = lastEnd(text.slice(this.#said.length));
    if (end) this.#speak(text, this.#said.length + end);
  }

  /** Blocks have come to their end, the unfinished one first: say what was not said. */
  finish(text) {
    this.#speak(text, text.length);
    this.#said = "";
  }

  #speak(text, end) {
    const begin = text.startsWith(this.#said) ? this.#said.length : Math.min(this.#said.length, end);
    const rest = text.slice(begin, end).trim();
    this.#said = text.slice(0, end);
    if (rest) this.#say(rest);
  }

  clear() {
    this.#said = "";
  }
}
