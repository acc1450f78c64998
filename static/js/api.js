// The HTTP door: JSON in, JSON out, problem details become ApiError.

export class ApiError extends Error {
  /** `status` 0 means that the server was not reached. */
  constructor({ status, code = "", title = "", detail = "", errors = null }) {
    super(detail || title || "Something went wrong. Try again in a moment.");
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

function csrfToken() {
  const cookie = document.cookie.split("; ").find((part) => part.startsWith("csrftoken="));
  return cookie ? decodeURIComponent(cookie.slice("csrftoken=".length)) : document.querySelector('meta[name="csrf-token"]').content;
}

async function problemOf(response) {
  const body = await response.json().catch(() => ({}));
  const code = body.code ?? (body.type ?? "").split(/[/:]/).pop();
  return new ApiError({ ...body, code, status: response.status });
}

/** The raw response of a call that went well. Throws ApiError otherwise. */
export async function request(path, { method = "GET", body, accept = "application/json", signal } = {}) {
  const headers = { Accept: accept };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError({ status: 0, detail: "The server cannot be reached right now." });
  }
  if (response.status === 401 || (response.status === 403 && response.redirected)) {
    throw new ApiError({ status: 401, detail: "Your sign-in has run out. Reload the page to sign in again." });
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** Send one file as a form, and hear how far it is: `onProgress(share)`. Resolves to the JSON answer. */
export function upload(path, file, { onProgress, signal }) {
  // fetch tells nothing of how much was sent.
  return new Promise((resolve, reject) => {
    const line = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file, file.name || "picture");
    line.open("POST", path);
    line.responseType = "json";
    line.setRequestHeader("Accept", "application/json");
    line.setRequestHeader("X-CSRFToken", csrfToken());
    line.upload.addEventListener("progress", (event) => event.lengthComputable && onProgress(event.loaded / event.total));
    line.addEventListener("load", () => {
      if (line.status >= 200 && line.status < 300) resolve(line.response);
      else reject(new ApiError({ ...line.response, status: line.status }));
    });
    line.addEventListener("error", () => reject(new ApiError({ status: 0, detail: "The server cannot be reached right now." })));
    line.addEventListener("abort", () => reject(new DOMException("Taken back", "AbortError")));
    signal.addEventListener("abort", () => line.abort());
    line.send(form);
  });
}

async function json(path, options) {
  const response = await request(path, options);
  return response.status === 204 ? null : response.json();
}

export const get = (path, options) => json(path, options);
export const post = (path, body = {}, options = {}) => json(path, { ...options, method: "POST", body });
export const patch = (path, body) => json(path, { method: "PATCH", body });
export const del = (path) => json(path, { method: "DELETE" });
