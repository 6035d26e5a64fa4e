// Keeps the look of the pages and the pages that a person opened last, to show them while there is no
// network, and takes the files that the system's "Share" sends. Where there is a network, every page
// comes from it, so that nothing is shown that may not be read any longer.

const SHELL = "podstead-shell";
const PAGES = "podstead-pages";
const PICTURES = "podstead-pictures";
const PERSON = "podstead-person";
const RECEIVED = "podstead-received";
const OFFLINE = "/.pages/offline";
const MAX_PAGES = 40;
const MAX_PICTURES = 100;
const MAX_SHELL = 80;
const MAX_PICTURE_BYTES = 5_000_000;
const MAX_AGE_MS = 7 * 86_400_000;
const SIGN_OUT = "/.pages/sign-out";
/** Where people who are not signed in are led. */
const SIGN_IN = "/.pages/sign-in";

const worker = /** @type {any} */ (self);

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (url.origin !== location.origin) return;
  if (request.method === "POST") {
    if (url.pathname === "/.pages/receive") event.respondWith(receive(request));
    else if (url.pathname === SIGN_IN) event.waitUntil(forget());
    else if (url.pathname === SIGN_OUT) event.waitUntil(Promise.all([forget(), caches.delete(RECEIVED)]));
    return;
  }
  if (request.method !== "GET") return;
  if (request.mode === "navigate") event.respondWith(page(event, url));
  else if (url.pathname.startsWith("/.pages/assets/")) event.respondWith(asset(event));
  else if (request.destination === "image") event.respondWith(picture(event));
});

/**
 * Forget all pages: the person signs out, or is not signed in any longer. Files that were received
 * stay for the person who signs in to put them in.
 */
async function forget() {
  await Promise.all([PAGES, PICTURES].map((name) => caches.delete(name)));
}

/**
 * A page from the network, or as it was, or the one that says that there is no network.
 * @param {any} event
 * @param {URL} url
 */
async function page(event, url) {
  if (url.pathname === SIGN_IN) event.waitUntil(forget());
  // The person has signed out at another origin: a subscription to notices ends as well.
  if (url.searchParams.has("signed-out")) event.waitUntil(worker.registration.unregister());
  try {
    const response = await fetch(event.request);
    event.waitUntil(keepPage(event.request, response.clone()));
    return response;
  } catch (error) {
    const pages = await caches.open(PAGES);
    const found = (await fresh(pages, event.request)) ?? (await pages.match(OFFLINE));
    if (found) return found;
    throw error;
  }
}

/**
 * Keep a page about the person's own files, and drop one that is gone or may not be read.
 * @param {Request} request
 * @param {Response} response
 */
async function keepPage(request, response) {
  const html = response.status === 200 ? await response.clone().text() : "";
  const person = /<meta name="offline-of" content="([^"]*)">/.exec(html)?.[1];
  if (person !== undefined) await belongTo(person);
  const pages = await caches.open(PAGES);
  if ([401, 403, 404, 410].includes(response.status)) await pages.delete(request);
  if (html.includes('<meta name="offline" content="keep">')) {
    await pages.delete(request); // what is stored last is at the end
    await pages.put(request, response);
    await shorten(pages, MAX_PAGES);
    if (!(await pages.match(OFFLINE))) await pages.add(OFFLINE);
  }
}

/**
 * Forget the pages of another person, who has signed out beyond the reach of this script.
 * @param {string} person
 */
async function belongTo(person) {
  const known = await caches.open(PERSON);
  const address = "/.pages/person";
  if ((await (await known.match(address))?.text()) === person) return;
  await forget();
  await known.put(address, new Response(person));
}

/**
 * What a cache has for a request, unless it is old.
 * @param {Cache} cache
 * @param {Request} request
 */
async function fresh(cache, request) {
  const found = await cache.match(request);
  const date = Date.parse(found?.headers.get("date") ?? "");
  return found && Date.now() - date < MAX_AGE_MS ? found : undefined;
}

/**
 * Remove what was stored first from a cache with more than so many entries, but not the page that says
 * that there is no network.
 * @param {Cache} cache
 * @param {number} most
 */
async function shorten(cache, most) {
  const keys = (await cache.keys()).filter((key) => new URL(key.url).pathname !== OFFLINE);
  await Promise.all(keys.slice(0, Math.max(0, keys.length - most)).map((key) => cache.delete(key)));
}

/**
 * A script, a style sheet or the font, whose address changes with its content.
 * @param {any} event
 */
async function asset(event) {
  const shell = await caches.open(SHELL);
  const found = await shell.match(event.request);
  if (found) return found;
  const response = await fetch(event.request);
  if (response.status === 200) {
    await shell.put(event.request, response.clone());
    await shorten(shell, MAX_SHELL);
  }
  return response;
}

/**
 * A picture on a page; kept if the page is.
 * @param {any} event
 */
async function picture(event) {
  try {
    const response = await fetch(event.request);
    if (response.status === 200 && response.type === "basic") {
      event.waitUntil(keepPicture(event, response.clone()));
    }
    return response;
  } catch (error) {
    const found = await fresh(await caches.open(PICTURES), event.request);
    if (found) return found;
    throw error;
  }
}

/**
 * @param {any} event
 * @param {Response} response
 */
async function keepPicture(event, response) {
  const size = Number(response.headers.get("content-length") ?? MAX_PICTURE_BYTES);
  const client = await worker.clients.get(event.clientId);
  const pages = await caches.open(PAGES);
  // Pages vary by fields of their request, of which the address of the client says nothing.
  if (size < MAX_PICTURE_BYTES && client && (await pages.match(client.url, { ignoreVary: true }))) {
    const pictures = await caches.open(PICTURES);
    await pictures.put(event.request, response);
    await shorten(pictures, MAX_PICTURES);
  }
}

/**
 * Store shared files until the page for putting them in takes them.
 * @param {Request} request
 */
async function receive(request) {
  const files = (await request.formData()).getAll("files").filter((file) => file instanceof File);
  await caches.delete(RECEIVED);
  const received = await caches.open(RECEIVED);
  await Promise.all(
    files.map((file, index) => {
      const { name, type } = /** @type {File} */ (file);
      const address = `/.pages/receive/${index}?name=${encodeURIComponent(name)}`;
      return received.put(address, new Response(file, { headers: { "content-type": type } }));
    }),
  );
  return Response.redirect("/.pages/receive", 303);
}
