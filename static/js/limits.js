// What a person can do where a limit was met: go on with an answer, or let a part rest.
import { post } from "mira/api";
import { giveFocusBack, h, icon } from "mira/dom";
import { toast } from "mira/toast";

/** The line under an answer that met the limit of its length. The events of the new turn do the rest. */
export function limitNote(turn) {
  const button = h("button", { class: "button button--small", type: "button", data: { retry: "" }, text: "Continue" });
  button.addEventListener("click", async () => {
    giveFocusBack(button);
    button.disabled = true;
    try {
      await post(`/api/v1/turns/${turn}/continue/`);
    } catch (error) {
      toast(error.message, { kind: error.status === 409 ? "info" : "bad" });
      button.disabled = false;
    }
  });
  return h("div", { class: "reply-note reply-note--limit", data: { limit: "" } }, h("span", { text: "The answer reached its limit." }), button);
}

/** The line under an answer that only quotes, because no model could be had: it can be asked again. */
export function quotedNote(turn) {
  const button = h("button", { class: "button button--small", type: "button", data: { retry: "" } }, icon("retry"), "Try again");
  button.addEventListener("click", async () => {
    giveFocusBack(button);
    button.disabled = true;
    try {
      await post(`/api/v1/turns/${turn}/retry/`);
    } catch (error) {
      toast(error.message, { kind: error.status === 409 ? "info" : "bad" });
    }
    button.disabled = false;
  });
  return h("div", { class: "reply-note reply-note--quoted", data: { quoted: "" } }, button);
}

/** For a conversation that the model cannot take in any more: the menu's own “Wrap up this part”. */
export function restButton() {
  const button = h("button", { class: "button button--small", type: "button", data: { retry: "" }, text: "Wrap up this part" });
  button.addEventListener("click", () => document.querySelector("[data-collapse]")?.click());
  return button;
}
