// Markdown to elements: the one place where text from a model becomes markup, and the one sanitiser.
import DOMPurify from "vendor/dompurify";
import MarkdownIt from "vendor/markdown-it";

import { copyButton, h } from "mira/dom";
import { mathPlugin } from "mira/math";
import { Sentences } from "mira/speaking";

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
markdown.use(mathPlugin);
// A picture from elsewhere would tell its server that this was read: it becomes a link.
markdown.renderer.rules.image = (tokens, index) => {
  const { escapeHtml } = markdown.utils;
  const address = tokens[index].attrGet("src") ?? "";
  const label = tokens[index].content || address;
  return `<a href="${escapeHtml(address)}">${escapeHtml(label)}</a>`;
};

// Style attributes do not pass the sanitiser; the side of a column comes as `align`.
for (const name of ["th_open", "td_open"]) {
  markdown.renderer.rules[name] = (tokens, index, options, env, self) => {
    const side = /text-align:(\w+)/.exec(tokens[index].attrGet("style") ?? "")?.[1];
    if (side) tokens[index].attrs = [["align", side]];
    return self.renderToken(tokens, index, options);
  };
}

const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li",
    "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "class", "start", "title", "data-math", "align"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  // Values that are no addresses; every other attribute is held against the pattern below.
  ADD_URI_SAFE_ATTR: ["data-math", "start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|\/(?!\/)|#)/i,
  RETURN_DOM_FRAGMENT: true,
};
const DRESS_WHILE_SHORTER = 4000; // characters of an unfinished block
const BLOCKS = "p, ul, ol, blockquote, table, h1, h2, h3, h4, h5, h6";
const LANGUAGE_CLASS = /^language-[\w+#.-]+$/;

// The big ones are fetched when a text first needs them.
let highlighter = null;
let typesetter = null;
const loadHighlighter = () => import("vendor/highlight").then((module) => (highlighter = module.default));
const loadTypesetter = () => import("vendor/katex").then(() => (typesetter = globalThis.katex));

function sanitise(html) {
  const fragment = DOMPurify.sanitize(html, ALLOWED);
  for (const element of fragment.querySelectorAll("[class]")) {
    if (element.localName !== "code" || !LANGUAGE_CLASS.test(element.className)) element.removeAttribute("class");
  }
  return fragment;
}

function typeset(element) {
  const source = element.dataset.source ?? element.textContent;
  element.dataset.source = source;
  element.className = `math math--${element.dataset.math}`;
  try {
    typesetter.render(source, element, {
      displayMode: element.dataset.math === "display",
      throwOnError: true,
      trust: false,
      maxSize: 20,
      maxExpand: 200,
    });
  } catch {
    // Not valid LaTeX (perhaps not LaTeX at all): the source is still readable.
    element.textContent = source;
    element.classList.add("math--raw");
  }
}

function highlight(code) {
  const language = code.className.replace("language-", "");
  if (!highlighter.getLanguage(language)) return;
  // hljs escapes its input; its output holds nothing but spans with classes.
  code.innerHTML = highlighter.highlight(code.textContent, { language, ignoreIllegals: true }).value;
}

function frameCode(pre) {
  const code = pre.querySelector("code") ?? pre;
  const language = (code.className.match(/^language-([\w+#.-]+)$/) ?? [])[1] ?? "";
  const box = h("div", { class: "code" });
  const head = h("div", { class: "code__head" }, h("span", { text: language || "text" }), copyButton("Copy code", () => code.textContent.replace(/\n$/, "")));
  pre.replaceWith(box);
  pre.setAttribute("tabindex", "0");
  box.append(head, pre);
}

function frameTable(table) {
  const box = h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Table" });
  table.replaceWith(box);
  box.append(table);
}

function openElsewhere(link) {
  const address = link.getAttribute("href");
  if (!address || address.startsWith("/") || address.startsWith("#")) return;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
}

function furnish(fragment) {
  for (const block of fragment.children) if (block.matches(BLOCKS)) block.dir = "auto"; // right to left where it is written so
  fragment.querySelectorAll("a").forEach(openElsewhere);
  fragment.querySelectorAll("pre").forEach(frameCode);
  fragment.querySelectorAll("table").forEach(frameTable);
}

/** Colour code and set formulas; fetches what is missing and comes back to these very elements. */
function finish(nodes, { fetches = true } = {}) {
  const found = (selector) => nodes.flatMap((node) => (node.matches?.(selector) ? [node] : [...(node.querySelectorAll?.(selector) ?? [])]));
  const codes = found('pre code[class^="language-"]');
  const formulas = found("[data-math]");
  const work = [];
  if (codes.length) {
    if (highlighter) codes.forEach(highlight);
    else if (fetches) work.push(loadHighlighter().then(() => codes.forEach(highlight)));
  }
  if (formulas.length) {
    if (typesetter) formulas.forEach(typeset);
    else if (fetches) work.push(loadTypesetter().then(() => formulas.forEach(typeset)));
  }
  return work.length ? Promise.all(work) : null;
}

/** Fetch what these texts will need, so that nothing moves after they are shown. */
export async function prepare(texts) {
  const work = [];
  if (!typesetter && texts.some((text) => /\$|\\[([]/.test(text))) work.push(loadTypesetter());
  if (!highlighter && texts.some((text) => text.includes("```"))) work.push(loadHighlighter());
  await Promise.all(work).catch(() => undefined);
}

function elementsOf(text) {
  const fragment = sanitise(markdown.render(text));
  furnish(fragment);
  return fragment;
}

/** The whole text as safe elements. */
export function renderMarkdown(text) {
  const fragment = elementsOf(text);
  finish([...fragment.children]);
  return fragment;
}

const plain = (nodes) => nodes.map((node) => node.textContent).join("\n");

/**
 * A text that grows. Finished blocks are rendered once and left alone (a selection in them stays);
 * only the last block is rendered again, at most once a frame, and less often when that takes long.
 */
export class GrowingText {
  #host;
  #text = "";
  #settled = 0; // characters of #text whose elements are final
  #tail = []; // nodes of the unfinished block
  #frame = 0;
  #notBefore = 0;
  #sentences;

  /** `say(text)` hears each finished sentence as plain text, code and tables as a whole. */
  constructor(host, say = () => undefined) {
    this.#host = host;
    this.#sentences = new Sentences(say);
  }

  get text() {
    return this.#text;
  }

  add(delta) {
    this.#text += delta;
    this.#frame ||= requestAnimationFrame((now) => this.#draw(now));
  }

  /** Nothing more comes; `whole` is the text as it was stored. */
  end(whole = this.#text) {
    this.#forgetFrame();
    if (whole !== this.#text || this.#settled < whole.length) {
      const isSame = whole.startsWith(this.#text.slice(0, this.#settled));
      this.#text = whole;
      this.#host.replaceChildren(renderMarkdown(whole));
      if (isSame) this.#sentences.finish(plain([...elementsOf(whole.slice(this.#settled)).childNodes]));
    }
    this.#settled = whole.length;
    this.#tail = [];
  }

  clear() {
    this.#forgetFrame();
    this.#text = "";
    this.#settled = 0;
    this.#tail = [];
    this.#sentences.clear();
    this.#host.replaceChildren();
  }

  #forgetFrame() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
  }

  #draw(now) {
    if (now < this.#notBefore) {
      this.#frame = requestAnimationFrame((later) => this.#draw(later));
      return;
    }
    this.#frame = 0;
    const started = performance.now();
    this.#settle();
    const open = elementsOf(this.#text.slice(this.#settled));
    const nodes = [...open.childNodes];
    this.#tail.forEach((node) => node.remove());
    this.#host.append(open);
    this.#tail = nodes;
    if (!nodes.some((node) => node.matches?.(".code, .table-scroll"))) this.#sentences.grow(plain(nodes));
    this.#dress(nodes);
    this.#notBefore = now + 3 * (performance.now() - started);
  }

  /** Formulas and code of the unfinished block, if that is at hand and quick. */
  #dress(nodes) {
    const rest = this.#text.length - this.#settled;
    if (rest < DRESS_WHILE_SHORTER) finish(nodes, { fetches: false });
    prepare([this.#text.slice(this.#settled)]);
  }

  /** Move the border past every top-level block but the last. */
  #settle() {
    const rest = this.#text.slice(this.#settled);
    const blocks = markdown.parse(rest, {}).filter((token) => token.level === 0 && token.map && token.nesting >= 0);
    if (blocks.length < 2) return;
    const border = offsetOfLine(rest, blocks.at(-1).map[0]);
    const done = elementsOf(rest.slice(0, border));
    const nodes = [...done.children];
    this.#tail.forEach((node) => node.remove());
    this.#tail = [];
    this.#host.append(done);
    finish(nodes);
    this.#settled += border;
    this.#sentences.finish(plain(nodes));
  }
}

function offsetOfLine(text, line) {
  let offset = 0;
  for (let passed = 0; passed < line; passed += 1) offset = text.indexOf("\n", offset) + 1;
  return offset;
}
