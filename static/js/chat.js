// The chat page: makes the parts and joins them. Event names: conversations/events.py.
import { get, patch } from "mira/api";
import { startBrief } from "mira/brief";
import { Composer } from "mira/composer";
import { History } from "mira/history";
import { startKeyboard } from "mira/keyboard";
import { LookBack } from "mira/lookback";
import { Outbox } from "mira/outbox";
import { Scroll } from "mira/scroll";
import { Socket } from "mira/socket";
import { Thread } from "mira/thread";
import { toast } from "mira/toast";
import { Turns } from "mira/turns";
import { Veil } from "mira/veil";
import { Wrapping } from "mira/wrapping";

const BANNER_AFTER_MS = 2500; // a short hiccup is not worth a word
const HEARD_MAX = 6;
const MESSAGE_ID = /^#([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

const $ = (selector) => document.querySelector(selector);
const state = JSON.parse($("#chat-state").textContent);
const userId = state.user.id;

/** A screen reader hears finished paragraphs, not every word as it appears. */
function announce(text) {
  const box = $("[data-announcer]");
  const line = document.createElement("p");
  line.textContent = text;
  box.append(line);
  while (box.children.length > HEARD_MAX) box.firstElementChild.remove();
}

const thread = new Thread({ list: $("[data-thread]"), rest: $("[data-rest]"), announce, rested: (segment) => wrapping.show(segment) });
const veil = new Veil({ form: $("[data-composer]"), line: $("[data-veil-line]"), dialog: $("[data-veil-dialog]"), thread, state: state.veil, announce });
const scroll = new Scroll({ box: $("[data-scroller]"), content: $("[data-content]"), pill: $("[data-pill]"), hasEnd: () => thread.reachesEnd });
const history = new History({ thread, scroll, box: $("[data-scroller]"), top: $("[data-edge-top]"), bottom: $("[data-edge-bottom]") });

const turns = new Turns({
  thread,
  lastEventId: state.last_event_id,
  accepted: (clientId) => outbox.accepted(clientId),
  refused: (clientId, text) => outbox.refused(clientId, text),
  missed: (edited) => {
    cameBack();
    for (const id of edited) refresh(id);
  },
  veil: (drawn) => veil.learn(drawn),
  heard: announce,
  state: (isRunning) => {
    composer.setRunning(isRunning);
    outbox.redraw();
    if (veil.isDrawn && !isRunning) veil.refresh();
  },
  grew: () => {
    showWelcome();
    scroll.noteNew();
  },
  ended: (status) => {
    if (status === "failed" || status === "interrupted") outbox.hold();
    else outbox.flush();
  },
});

let hasLoaded = false;
let early = []; // events that came before the history was on the page

function take(event) {
  if (!hasLoaded) early.push(event);
  else turns.take(event);
}

const socket = new Socket("/ws/chat/", {
  resumeFrom: () => early.at(-1)?.id ?? turns.lastEventId,
  onEvent: take,
  onOpen: async (isAgain) => {
    if (!hasLoaded) return; // whether something is being answered is not known yet
    if (isAgain) await cameBack();
    outbox.flush();
  },
  onState: showLine,
});

const outbox = new Outbox({
  list: $("[data-outbox]"),
  userId,
  socket,
  turns,
  onEvent: take,
  onEdit: (text, files) => composer.insert(text, files),
  onChange: showWelcome,
});

const composer = new Composer({
  form: $("[data-composer]"),
  area: $("#main"),
  userId,
  send: (text, files) => {
    outbox.add(text, files, { offRecord: veil.isDrawn });
    toNow();
  },
  stop: () => turns.stop((frame) => socket.send(frame)),
});

function showWelcome() {
  $("[data-welcome]").hidden = !hasLoaded || !thread.isEmpty || !outbox.isEmpty;
}

let bannerTimer = 0;
function showLine(line) {
  const banner = $("[data-banner]");
  if (line === "open" || line === "refused") {
    clearTimeout(bannerTimer);
    bannerTimer = 0;
  }
  if (line === "open") {
    banner.hidden = true;
    return;
  }
  if (line === "refused") {
    banner.replaceChildren("Your sign-in has run out. ", Object.assign(document.createElement("a"), { href: "/", textContent: "Sign in again" }));
    banner.hidden = false;
    return;
  }
  if (line === "closed") outbox.lineLost();
  const say = () => {
    banner.textContent = navigator.onLine ? "The line is down. What you write is kept, and I keep trying." : "You are offline. What you write is kept and goes out when you are back.";
    banner.hidden = false;
  };
  if (banner.hidden) bannerTimer ||= setTimeout(say, BANNER_AFTER_MS);
  else say();
}

/** After a pause the stream may have forgotten what happened meanwhile; the server has not. */
async function cameBack() {
  try {
    await veil.refresh();
    await history.catchUp();
    await turns.settleLast();
  } catch {
    // The next reconnect, or the turn's watchdog, asks again.
  }
  showWelcome();
}

/** A message that was changed on another page, if it is shown here. */
async function refresh(id) {
  if (!thread.find(id)) return;
  try {
    const { results } = await get(`/api/v1/messages/?at=${encodeURIComponent(id)}&page_size=3`);
    for (const message of results) if (thread.find(message.id)) thread.upsert(message);
  } catch {
    // It is right again when the page is loaded anew.
  }
}

/** What the address asks for: `/?at=` a message, a date or a time, or `/#` a message. */
function asked() {
  return new URLSearchParams(location.search).get("at") ?? MESSAGE_ID.exec(location.hash)?.[1] ?? null;
}

/** Show the message that was asked for, and tell a screen reader where it is. */
function point(id, block) {
  const found = thread.find(id);
  if (!found) return scroll.toEnd();
  for (const old of document.querySelectorAll(".entry--sought")) old.classList.remove("entry--sought");
  found.element.classList.add("entry--sought");
  found.article.tabIndex = -1;
  scroll.show(found.element, block);
  found.article.focus({ preventScroll: true });
  return undefined;
}

/** Go to a place in the past: a message's id, a date or time, or START. False if there is none. */
async function go(at) {
  try {
    const id = await history.open(at);
    if (id) point(id, id === at ? "center" : "start");
    return true;
  } catch (error) {
    toast(error.status === 404 ? "That message is not here any more." : error.message, { kind: error.status === 404 ? "info" : "bad" });
    return false;
  }
}

/** To what is said now. */
async function toNow({ smooth = false } = {}) {
  if (!history.reachesEnd) {
    try {
      await history.open();
    } catch (error) {
      toast(error.message, { kind: "bad" });
      return;
    }
    await turns.settleLast();
  }
  scroll.toEnd({ smooth });
}

async function load() {
  const status = $("[data-loading]");
  const at = asked();
  const isThere = at !== null && (await go(at));
  try {
    if (!isThere) await history.open(null, state.page);
  } catch (error) {
    status.textContent = error.message;
    const again = Object.assign(document.createElement("button"), { className: "button button--small", type: "button", textContent: "Try again" });
    again.addEventListener("click", () => load());
    status.append(" ", again);
    return;
  }
  if (state.reopenable) thread.learnSegment(state.reopenable);
  state.page = null; // as it was when the page was made
  status.hidden = true;
  hasLoaded = true;
  if (isThere) window.history.replaceState(null, "", "/");
  else scroll.toEnd();
  const waiting = early;
  early = [];
  if (state.open_turn) {
    outbox.accepted(state.open_turn.client_id);
    thread.upsert(state.open_turn.message);
    turns.expect(state.open_turn.id);
  }
  waiting.forEach(take);
  if (!state.open_turn) await turns.settleLast();
  showWelcome();
  outbox.flush();
}

/** Links into the conversation do not leave it. */
function startLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="/?at="]');
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    lookBack.close();
    go(new URL(link.href).searchParams.get("at"));
  });
  window.addEventListener("hashchange", () => {
    const at = asked();
    if (!at) return;
    window.history.replaceState(null, "", "/");
    go(at);
  });
}

/** The person's days and dates are those of the place they are in. */
function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const told = `mira.zone.${userId}`;
  if ("fixedZone" in document.documentElement.dataset) return;
  if (!zone || zone === state.user.timezone || sessionStorage.getItem(told) === zone) return;
  patch("/api/v1/me/", { timezone: zone }).then(
    () => sessionStorage.setItem(told, zone),
    () => undefined, // Told at the next visit.
  );
}

/** iOS lays the keyboard over the page: the visible height is what counts. */
function fitKeyboard() {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const fit = () => {
    document.documentElement.style.setProperty("--visible-height", `${viewport.height}px`);
    if (viewport.offsetTop) window.scrollTo(0, 0);
  };
  viewport.addEventListener("resize", fit);
  fit();
}

for (const starter of document.querySelectorAll("[data-starter]")) {
  starter.addEventListener("click", () => composer.insert(starter.dataset.starter));
}
$("[data-pill]").addEventListener("click", (event) => {
  if (history.reachesEnd) return;
  event.stopImmediatePropagation();
  toNow();
}, true);

document.addEventListener("mira:deleted", (event) => {
  thread.remove(event.detail.ids);
  showWelcome();
});

const wrapping = new Wrapping({
  button: $("[data-collapse]"),
  dialog: $("[data-wrap-dialog]"),
  box: $("[data-reopen]"),
  thread,
  toEnd: () => history.reachesEnd && scroll.toEnd({ smooth: true }),
});
const lookBack = new LookBack({ dialog: $("[data-lookback]"), opener: $("[data-lookback-open]"), go, toNow });
startKeyboard({ box: $("[data-scroller]"), go, toNow, lookBack });
startLinks();
fitKeyboard();
startBrief($("[data-thread]"));
tellZone();
socket.connect();
load();
if (matchMedia("(hover: hover)").matches) composer.focus();
