// Files on their way into a message: picked, dropped or pasted, uploaded at once, shown as chips.
import { del, upload } from "mira/api";
import { h, icon } from "mira/dom";

const MAX_BYTES = 20_000_000;
const MAX_FILES = 10; // with one message
const THUMB_MAX = { width: 320, height: 280 };

export function sizeText(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  const [amount, unit] = bytes < 1_000_000 ? [bytes / 1000, "kB"] : [bytes / 1_000_000, "MB"];
  return `${amount.toLocaleString("en", { maximumFractionDigits: amount < 10 ? 1 : 0 })} ${unit}`;
}

const isPicture = (file) => file.media_type?.startsWith("image/");

function picture(file) {
  // The size is known before the bytes are here, so that the page does not jump.
  const scale = Math.min(1, THUMB_MAX.width / file.width, THUMB_MAX.height / file.height);
  const img = h("img", { src: file.url, alt: file.name, loading: "lazy", width: Math.round(file.width * scale), height: Math.round(file.height * scale) });
  return h("a", { class: "file file--picture", href: file.url, target: "_blank", rel: "noopener", title: file.name }, img);
}

function download(file) {
  const pages = file.pages > 1 ? `, ${file.pages} pages` : "";
  return h("a", { class: "file", href: file.url, download: file.name }, icon("file"), h("span", { class: "file__name", text: file.name }), h("span", { class: "file__size", text: `${sizeText(file.size)}${pages}` }));
}

/** The files of a message, as a list; an empty array where there are none. */
export function fileList(files) {
  if (!files?.length) return [];
  const items = files.map((file) => h("li", {}, isPicture(file) ? picture(file) : download(file)));
  return [h("ul", { class: "files", "aria-label": files.length === 1 ? "Attached file" : "Attached files" }, items)];
}

export class Attachments {
  #tray;
  #status;
  #entries = [];
  #onChange;

  /** `form` holds the tray, the button and the input; files can be dropped anywhere on `area`. */
  constructor({ form, area, onChange }) {
    this.#tray = form.querySelector("[data-tray]");
    this.#status = form.querySelector("[data-tray-status]");
    this.#onChange = onChange;
    const input = form.querySelector("[data-file]");
    form.querySelector("[data-attach]").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
    });
    form.querySelector("textarea").addEventListener("paste", (event) => {
      if (!event.clipboardData?.files.length) return;
      event.preventDefault();
      this.add(event.clipboardData.files);
    });
    this.#listenForDrops(area);
  }

  get isEmpty() {
    return this.#entries.every(({ state }) => state === "failed");
  }

  get isBusy() {
    return this.#entries.some(({ state }) => state === "uploading");
  }

  get hasFailed() {
    return this.#entries.some(({ state }) => state === "failed");
  }

  /** What a screen reader shall hear of the files. */
  say(text) {
    this.#status.textContent = text;
  }

  add(files) {
    for (const file of files) this.#begin(file);
    this.#changed();
  }

  /** Files that are on the server already, back from a message that was not sent. */
  put(files) {
    for (const file of files) this.#entries.push({ name: file.name, state: "ready", file });
    this.#changed();
  }

  /** The files that are ready, taken out of the tray; what was refused goes too, it has been seen. */
  take() {
    const ready = this.#entries.filter(({ state }) => state === "ready");
    this.#entries = [];
    this.#changed();
    return ready.map(({ file }) => file);
  }

  async #begin(file) {
    const entry = { name: file.name || "Pasted picture", state: "uploading", progress: 0, leaving: new AbortController() };
    const count = this.#entries.filter(({ state }) => state !== "failed").length;
    this.#entries.push(entry);
    if (count >= MAX_FILES) return this.#fail(entry, `At most ${MAX_FILES} files go with one message.`);
    if (file.size > MAX_BYTES) return this.#fail(entry, "A file may have at most 20 MB.");
    try {
      entry.file = await upload("/api/v1/files/", file, {
        signal: entry.leaving.signal,
        onProgress: (share) => {
          entry.progress = share;
          entry.bar?.setAttribute("value", String(share));
        },
      });
      entry.name = entry.file.name;
      entry.state = "ready";
      this.say(`${entry.name} is attached.`);
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      return this.#fail(entry, error.errors?.file?.[0] ?? error.message);
    }
    return this.#changed();
  }

  #fail(entry, why) {
    Object.assign(entry, { state: "failed", why });
    this.say(`${entry.name} is not attached. ${why}`);
    this.#changed();
    this.#tray.querySelector(".chip--failed").scrollIntoView({ block: "nearest" });
  }

  #remove(entry) {
    const place = this.#entries.indexOf(entry);
    this.#entries.splice(place, 1);
    entry.leaving?.abort();
    if (entry.file) del(`/api/v1/files/${entry.file.id}/`).catch(() => undefined); // it goes by itself in a day
    this.say(`${entry.name} is removed.`);
    this.#changed();
    const next = this.#tray.querySelectorAll("button")[Math.min(place, this.#entries.length - 1)];
    (next ?? this.#tray.closest("form").querySelector("textarea")).focus();
  }

  #changed() {
    this.#tray.hidden = this.#entries.length === 0;
    this.#tray.replaceChildren(...this.#entries.map((entry) => this.#chip(entry)));
    this.#onChange();
  }

  #chip(entry) {
    const chip = h("li", { class: `chip chip--${entry.state}` });
    chip.append(entry.file && isPicture(entry.file) ? h("img", { class: "chip__thumb", src: entry.file.url, alt: "" }) : icon("file"));
    const text = h("span", { class: "chip__text" }, h("span", { class: "chip__name", text: entry.name }));
    if (entry.state === "uploading") {
      entry.bar = h("progress", { max: "1", value: String(entry.progress), "aria-label": `Uploading ${entry.name}` });
      text.append(entry.bar);
    } else text.append(h("span", { class: "chip__note", text: entry.state === "failed" ? entry.why : sizeText(entry.file.size) }));
    chip.append(text, h("button", { class: "icon-button chip__remove", type: "button", "aria-label": `Remove ${entry.name}`, title: "Remove", on: { click: () => this.#remove(entry) } }, icon("close")));
    return chip;
  }

  #listenForDrops(area) {
    const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    const mark = (isOver) => area.classList.toggle("chat--dropping", isOver);
    area.addEventListener("dragover", (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      mark(true);
    });
    area.addEventListener("dragleave", (event) => {
      if (!area.contains(event.relatedTarget)) mark(false);
    });
    area.addEventListener("drop", (event) => {
      mark(false);
      if (!holdsFiles(event)) return;
      event.preventDefault();
      this.add(event.dataTransfer.files);
    });
  }
}
