// LaTeX inside Markdown: $…$, $$…$$, \(…\), \[…\]. Prices are not mathematics.

const OPENERS = [
  { open: "$$", close: "$$", display: true },
  { open: "\\[", close: "\\]", display: true },
  { open: "\\(", close: "\\)", display: false },
];
const LOOKS_LIKE_MATH = /[\\^_=<>+*{}|]/;

function isAlphanumeric(character) {
  return character !== undefined && /[\p{L}\p{N}]/u.test(character);
}

/** Index of `close` from `from` on, skipping escaped characters; -1 if there is none. */
function findClose(source, close, from) {
  for (let at = from; at < source.length; at += 1) {
    if (source.startsWith(close, at)) return at;
    if (source[at] === "\\") at += 1;
  }
  return -1;
}

/**
 * The end of a $…$ that starts at `start`, or -1. As in pandoc, the opening sign has no space after
 * it, the closing one none before it and no letter or digit after it. On top, what begins with a
 * digit and holds a space must look like a formula ("$5 is less than 10$" is not one).
 */
function dollarEnd(source, start) {
  const first = source[start + 1];
  if (first === undefined || /\s|\$/.test(first) || isAlphanumeric(source[start - 1])) return -1;
  for (let at = start + 1; at < source.length; at += 1) {
    if (source[at] === "\\") at += 1;
    else if (source[at] === "$") {
      if (/\s/.test(source[at - 1]) || isAlphanumeric(source[at + 1])) return -1;
      const body = source.slice(start + 1, at);
      return /^\d/.test(body) && /\s/.test(body) && !LOOKS_LIKE_MATH.test(body) ? -1 : at;
    }
  }
  return -1;
}

function push(state, content, display) {
  const token = state.push("math_inline", "math", 0);
  token.content = content;
  token.meta = { display };
}

function inlineRule(state, silent) {
  const { src, pos } = state;
  for (const { open, close, display } of OPENERS) {
    if (!src.startsWith(open, pos)) continue;
    const end = findClose(src, close, pos + open.length);
    if (end < 0 || !src.slice(pos + open.length, end).trim()) return false;
    if (!silent) push(state, src.slice(pos + open.length, end).trim(), display);
    state.pos = end + close.length;
    return true;
  }
  if (src[pos] !== "$") return false;
  const end = dollarEnd(src, pos);
  if (end < 0) return false;
  if (!silent) push(state, src.slice(pos + 1, end), false);
  state.pos = end + 1;
  return true;
}

/** A display formula that begins a line; it may hold line breaks, not blank lines before its end. */
function blockRule(state, startLine, endLine, silent) {
  const start = state.bMarks[startLine] + state.tShift[startLine];
  const delimiter = OPENERS.find(({ open, display }) => display && state.src.startsWith(open, start));
  if (!delimiter || state.sCount[startLine] - state.blkIndent >= 4) return false;
  const { open, close } = delimiter;
  let body = "";
  for (let line = startLine; line < endLine; line += 1) {
    const from = line === startLine ? start + open.length : state.bMarks[line] + state.tShift[line];
    const text = state.src.slice(from, state.eMarks[line]);
    const end = findClose(text, close, 0);
    if (end < 0) {
      if (line > startLine && state.isEmpty(line)) return false;
      body += `${text}\n`;
      continue;
    }
    if (text.slice(end + close.length).trim()) return false;
    if (silent) return true;
    const token = state.push("math_block", "math", 0);
    token.block = true;
    token.content = (body + text.slice(0, end)).trim();
    token.map = [startLine, line + 1];
    state.line = line + 1;
    return true;
  }
  return false;
}

/** markdown-it plugin: formulas become `<span data-math="inline|display">` holding their source. */
export function mathPlugin(markdown) {
  const { escapeHtml } = markdown.utils;
  markdown.inline.ruler.before("escape", "math_inline", inlineRule);
  markdown.block.ruler.after("blockquote", "math_block", blockRule, {
    alt: ["paragraph", "reference", "blockquote", "list"],
  });
  markdown.renderer.rules.math_inline = (tokens, index) =>
    `<span data-math="${tokens[index].meta.display ? "display" : "inline"}">${escapeHtml(tokens[index].content)}</span>`;
  markdown.renderer.rules.math_block = (tokens, index) =>
    `<div data-math="display">${escapeHtml(tokens[index].content)}</div>\n`;
}
