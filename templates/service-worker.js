// Says that MIRA cannot be reached, when it cannot. It keeps that one page and how it looks, and
// nothing else: no message, no answer, no page of a person.
const { cache: CACHE, page: PAGE, kept: KEPT } = JSON.parse("{{ worker|escapejs }}");

async function keep(path) {
  // Without cookies: the page is the same for everybody, and stays so.
  const response = await fetch(path, { credentials: "omit", cache: "reload" });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  await (await caches.open(CACHE)).put(path, response);
}

async function dropOld() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith("mira-offline-") && name !== CACHE).map((name) => caches.delete(name)));
}

self.addEventListener("install", (event) => event.waitUntil(Promise.all(KEPT.map(keep)).then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(dropOld().then(() => self.clients.claim())));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { pathname, origin } = new URL(request.url);
  const stored = request.mode === "navigate" ? PAGE : origin === self.location.origin && KEPT.includes(pathname) ? pathname : null;
  if (request.method !== "GET" || !stored) return;
  const instead = () => caches.match(stored, { ignoreVary: true });
  event.respondWith(fetch(request).catch(async () => (await instead()) ?? Response.error()));
});
