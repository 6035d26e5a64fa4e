// Registers the service worker, says when a page is shown without a network, and hands files that the
// system's "Share" sent to the form of the page for uploads.

const RECEIVED_FILES = "podstead-received";
/** As in the service worker, which shows nothing older. */
const MAX_SHOWN_AGE_MS = 7 * 86_400_000;

/** Say on a page that comes from the service worker that it may be out of date. */
function sayOffline() {
  const said = document.querySelector("script[data-offline]")?.getAttribute("data-offline");
  const main = document.querySelector("main");
  if (!said || !main || document.getElementById("offline")) return;
  const note = document.createElement("div");
  note.id = "offline";
  note.className = "note";
  note.setAttribute("role", "status");
  note.textContent = said;
  main.prepend(note);
}

/** List what can be opened without a network. */
async function listOpened() {
  const section = document.querySelector("[data-opened]");
  if (!(section instanceof HTMLElement)) return;
  const pages = await caches.open("podstead-pages");
  for (const request of [...(await pages.keys())].reverse()) {
    const { pathname } = new URL(request.url);
    const response = await pages.match(request);
    if (!pathname.startsWith("/.pages/files/") || !response) continue;
    if (!(Date.now() - Date.parse(response.headers.get("date") ?? "") < MAX_SHOWN_AGE_MS)) continue;
    const shown = new DOMParser().parseFromString(await response.text(), "text/html");
    const link = document.createElement("a");
    link.href = request.url;
    link.textContent = shown.querySelector("h1")?.textContent?.trim() || decodeURI(pathname);
    const item = document.createElement("li");
    item.className = "row";
    item.append(link);
    section.querySelector("ul")?.append(item);
    section.hidden = false;
  }
}

/**
 * Fill in the form for uploads. The person sends it: any site can make a browser post files to the
 * address that the system's "Share" uses.
 */
async function takeReceived() {
  if (document.readyState !== "complete") {
    await new Promise((resolve) => addEventListener("load", resolve, { once: true }));
  }
  const input = document.querySelector("main .upload-form input[type=file]");
  if (!(input instanceof HTMLInputElement) || !input.form) return;
  const received = await caches.open(RECEIVED_FILES);
  const files = new DataTransfer();
  for (const request of await received.keys()) {
    const response = await received.match(request);
    if (!response) continue;
    const name = new URL(request.url).searchParams.get("name") ?? "file";
    const content = await response.blob();
    files.items.add(new File([content], name, { type: content.type }));
  }
  await caches.delete(RECEIVED_FILES);
  if (files.files.length === 0) return;
  input.files = files.files;
  input.form.hidden = false;
}

if ("serviceWorker" in navigator && isSecureContext) {
  navigator.serviceWorker.register("/.pages/service-worker.js").catch(() => {});
  addEventListener("offline", sayOffline);
  if (!navigator.onLine) sayOffline();
  void listOpened();
  if (new URLSearchParams(location.search).has("received")) void takeReceived();
}
