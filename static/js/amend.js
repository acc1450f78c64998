// A message of the past is edited or deleted, and the person says what becomes of what came of it.
import { del, get, patch } from "mira/api";
import { h, icon } from "mira/dom";
import { toast } from "mira/toast";

const address = (message) => `/api/v1/messages/${encodeURIComponent(message.id)}/`;
const times = (count, one, many) => (count === 1 ? `1 ${one}` : `${count} ${many}`);

/** The buttons under a message of the person's. `view` is its SaidView. */
export function amendButtons(view) {
  const button = (name, label, run) => h("button", { class: "icon-button", type: "button", "aria-label": label, title: label, on: { click: run } }, icon(name));
  return [button("edit", "Edit this message", () => startEdit(view)), button("trash", "Delete this message", () => askDelete(view))];
}

/** What came of a message; undefined, with a toast, where it cannot be asked. */
async function cameOf(message) {
  try {
    return await get(`${address(message)}what-came-of-it/`);
  } catch (error) {
    toast(error.status === 404 ? "This message is gone already." : error.message, { kind: "bad" });
    return undefined;
  }
}

function choice(name, value, text, checked = false) {
  return h("label", { class: "amend__choice" }, h("input", { type: "radio", name, value, checked }), h("span", { text }));
}

function restingList(memories) {
  return h("ul", { class: "amend__memories" }, memories.slice(0, 6).map((memory) => h("li", { text: memory.text })), memories.length > 6 ? h("li", { text: `and ${memories.length - 6} more` }) : null);
}

/** A question with choices; resolves to the form's values, or null when it was left. */
function ask({ title, body, confirm, danger = false }) {
  return new Promise((resolve) => {
    const cancel = h("button", { class: "button button--ghost", type: "button", text: "Cancel" });
    const form = h("form", { method: "dialog" }, h("h2", { class: "dialog__title", id: "amend-title", text: title }), h("div", { class: "dialog__body" }, body), h("div", { class: "dialog__actions" }, cancel, h("button", { class: `button ${danger ? "button--danger" : "button--primary"}`, type: "submit", text: confirm })));
    const dialog = h("dialog", { class: "dialog amend", "aria-labelledby": "amend-title" }, form);
    let given = null;
    cancel.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", () => {
      given = Object.fromEntries(new FormData(form));
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(given);
    });
    document.body.append(dialog);
    dialog.showModal();
    cancel.focus();
  });
}

async function askDelete(view) {
  const message = view.message;
  const came = await cameOf(message);
  if (!came) return;
  const body = [h("p", { text: "It is gone for good. What I kept of this part of our conversation is written anew without it." })];
  if (came.answer) body.push(h("label", { class: "amend__choice" }, h("input", { type: "checkbox", name: "answer", checked: true }), h("span", { text: "Delete my answer to it, too" })));
  if (came.memories.length) {
    const resting = came.memories.length === 1 ? "One memory rests on it alone:" : `${came.memories.length} memories rest on it alone:`;
    body.push(h("fieldset", { class: "amend__came" }, h("legend", { text: resting }), restingList(came.memories), choice("what", "forget", "Forget that, too", true), choice("what", "keep", "Keep that")));
  }
  const given = await ask({ title: "Delete this message?", body, confirm: "Delete", danger: true });
  if (!given) return;
  const holder = view.element.closest("[tabindex]");
  const query = new URLSearchParams({ with_answer: String(Boolean(given.answer)) });
  if (given.what) query.set("what_came_of_it", given.what);
  try {
    const gone = await del(`${address(message)}?${query}`);
    holder?.focus({ preventScroll: true }); // the button that had it is gone
    view.element.dispatchEvent(new CustomEvent("mira:deleted", { bubbles: true, detail: { ids: gone.deleted } }));
    const text = gone.forgotten ? `Deleted, and ${times(gone.forgotten, "memory", "memories")} forgotten.` : "Deleted.";
    toast(text, { kind: "good", ...(gone.receipt && { action: { label: "Receipt", run: () => location.assign("/memories/forgotten/") } }) });
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
}

function startEdit(view) {
  const { said } = view;
  const open = said.querySelector(".amend__text");
  if (open) return open.focus();
  const before = [...said.childNodes];
  const area = h("textarea", { class: "amend__text", rows: "3", "aria-label": "Your message" });
  area.value = view.message.text;
  const end = (changed = null) => {
    said.classList.remove("said--editing");
    said.replaceChildren(...before);
    if (changed) view.update(changed);
    view.article.querySelector('[aria-label="Edit this message"]')?.focus();
  };
  const save = async () => {
    const text = area.value.trim();
    if (!text || text === view.message.text) return end();
    const changed = await change(view.message, text);
    if (!changed) return area.focus();
    return end(changed);
  };
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
    event.stopPropagation();
  });
  said.classList.add("said--editing");
  said.replaceChildren(area, h("div", { class: "actions amend__actions" }, h("button", { class: "button button--primary button--small", type: "button", text: "Save", on: { click: save } }), h("button", { class: "button button--ghost button--small", type: "button", text: "Cancel", on: { click: () => end() } })));
  area.style.height = `${Math.min(area.scrollHeight + 4, 320)}px`;
  area.focus();
}

/** The changed message; undefined if the person left the question or it did not work. */
async function change(message, text) {
  const came = await cameOf(message);
  if (!came) return undefined;
  const body = { text };
  if (came.memories.length) {
    const given = await ask({
      title: "And what I remember of it?",
      body: h("fieldset", { class: "amend__came" }, h("legend", { text: "This rests on what you said there:" }), restingList(came.memories), choice("what", "derive", "Remember the new words instead", true), choice("what", "forget", "The same, and forget the old for good"), choice("what", "keep", "Leave it as it is")),
      confirm: "Save",
    });
    if (!given) return undefined;
    body.what_came_of_it = given.what;
  }
  try {
    return await patch(address(message), body);
  } catch (error) {
    toast(error.message, { kind: "bad" });
    return undefined;
  }
}
