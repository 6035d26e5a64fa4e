// Switches notices on for this browser. It asks for permission only when the person has clicked.

const part = /** @type {HTMLElement | null} */ (document.querySelector("[data-push]"));
const line = /** @type {HTMLElement | null} */ (part?.querySelector("[data-push-status]"));
const button = /** @type {HTMLButtonElement | null} */ (part?.querySelector("[data-push-on]"));

/** @param {string} text */
function say(text) {
  if (line) line.textContent = text;
}

/** @param {ArrayBuffer | null} bytes */
function encode(bytes) {
  const text = String.fromCharCode(...new Uint8Array(bytes ?? new ArrayBuffer(0)));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @param {string} text */
function decode(text) {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(bytes, (each) => each.charCodeAt(0));
}

/**
 * Send something to this server.
 * @param {string} address
 * @param {Record<string, string>} body
 */
async function send(address, body) {
  const response = await fetch(address, {
    method: "POST",
    headers: {
      accept: "application/json",
      "content-type": "application/json",
      "x-csrf-token": document.body.dataset.csrfToken ?? "",
    },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status}`);
  return response;
}

/** Ask the person for permission, and the browser for a subscription of this server. */
async function turnOn() {
  if ((await Notification.requestPermission()) !== "granted") return show();
  const { pushManager } = await navigator.serviceWorker.ready;
  const { key } = await (await send("/.pages/push/key", {})).json();
  await (await pushManager.getSubscription())?.unsubscribe();
  const subscription = await pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: decode(key),
  });
  await send("/.pages/push", {
    endpoint: subscription.endpoint,
    p256dh: encode(subscription.getKey("p256dh")),
    auth: encode(subscription.getKey("auth")),
  });
  location.reload();
}

/** The service worker, which the first page after a sign-in has only begun to register. */
async function ready() {
  if (!("serviceWorker" in navigator)) return undefined;
  /** @type {Promise<undefined>} */
  const late = new Promise((resolve) => setTimeout(resolve, 10000));
  return Promise.race([navigator.serviceWorker.ready, late]);
}

/** Show what is possible in this browser. */
async function show() {
  if (!part || !button) return;
  const worker = await ready();
  const can = worker && "PushManager" in window && "Notification" in window;
  const subscription = can ? await worker.pushManager.getSubscription() : null;
  const isOn = subscription && (await isKnown(subscription.endpoint));
  button.hidden = !can || isOn || Notification.permission === "denied";
  if (!can) say(part.dataset.unsupported ?? "");
  else if (Notification.permission === "denied") say(part.dataset.denied ?? "");
  else say(isOn ? (part.dataset.on ?? "") : "");
}

/**
 * Whether the page lists the browser with this address, of which it has a hash.
 * @param {string} endpoint
 */
async function isKnown(endpoint) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  const hex = [...new Uint8Array(digest)].map((each) => each.toString(16).padStart(2, "0")).join("");
  return document.querySelector(`button[name=device][value^="${hex.slice(0, 32)}."]`) !== null;
}

button?.addEventListener("click", async () => {
  const { again, failed, signsInFirst } = part?.dataset ?? {};
  if (again && signsInFirst !== undefined) return location.assign(again);
  button.disabled = true;
  try {
    await turnOn();
  } catch (error) {
    // The page may have been open for longer than a sign-in counts as recent.
    if (again && /** @type {Error} */ (error).message === "403") location.assign(again);
    else say(failed ?? "");
  }
  button.disabled = false;
});
void show();
