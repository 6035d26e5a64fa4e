// Sharing in a dialog: the pages about access, without leaving the files.

import { closeByBack } from "./dialogs.js";
import { addStyles } from "./pods.js";

const OPENER = "a[data-share]";

/**
 * The part of a page that the dialog shows.
 * @param {Response} response
 * @returns {Promise<{title: string, content: HTMLElement} | null>}
 */
async function fragmentOf(response) {
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const content = page.querySelector("[data-sharing]");
  if (!(content instanceof HTMLElement)) return null;
  const title = page.querySelector("h1")?.textContent ?? "";
  const notice = page.querySelector("[data-sharing-notice]");
  notice?.classList.replace("visually-hidden", "note");
  notice?.setAttribute("role", "status");
  return { title, content };
}

/** @returns {HTMLDialogElement} */
function newDialog() {
  const dialog = document.createElement("dialog");
  dialog.className = "sharing-dialog";
  dialog.setAttribute("aria-labelledby", "sharing-title");
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  return dialog;
}

/**
 * Show what a request answers; leave for the page itself if it is not about access.
 * @param {HTMLDialogElement} dialog
 * @param {string} address
 * @param {RequestInit} [options]
 * @returns {Promise<{content: HTMLElement} | null>} what is shown
 */
async function show(dialog, address, options) {
  dialog.setAttribute("aria-busy", "true");
  dialog.inert = true;
  let response, found;
  try {
    await addStyles("more.css");
    response = await fetch(address, { ...options, headers: { Accept: "text/html" } });
    found = await fragmentOf(response);
  } catch {
    window.location.assign(address); // the browser says what is wrong with the connection
    return null;
  }
  dialog.inert = false;
  dialog.removeAttribute("aria-busy");
  if (found === null) {
    window.location.assign(options === undefined ? address : response.url);
    return null;
  }
  const heading = document.createElement("h2");
  heading.id = "sharing-title";
  heading.tabIndex = -1;
  heading.textContent = found.title;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "plain small close";
  close.textContent = "×";
  close.setAttribute("aria-label", dialog.dataset.close ?? "");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(close, heading, document.importNode(found.content, true));
  enhance(dialog);
  if (found.content.querySelector("[data-sharing-notice]") !== null) dialog.dataset.saved = "yes";
  if (!dialog.open) {
    dialog.showModal();
    closeByBack(dialog, () => {
      if (dialog.dataset.saved) window.location.reload(); // the page says who can see what
    });
  }
  const field = options === undefined ? dialog.querySelector("#who") : null;
  (field instanceof HTMLElement ? field : heading).focus();
  return found;
}

/**
 * Forms and links of the fragment stay in the dialog.
 * @param {HTMLDialogElement} dialog
 */
function enhance(dialog) {
  dialog.addEventListener("submit", onSubmit);
  dialog.addEventListener("click", onClick);
  for (const form of dialog.querySelectorAll("form[data-changes]")) submitAtOnce(form);
  hideNameWhereNoneIsNeeded(dialog);
}

/** @param {SubmitEvent} event */
function onSubmit(event) {
  const { target: form, submitter, currentTarget: dialog } = event;
  if (!(form instanceof HTMLFormElement) || !(dialog instanceof HTMLDialogElement)) return;
  event.preventDefault();
  send(dialog, form, submitter);
}

/**
 * Send a form, and show the answer.
 * @param {HTMLDialogElement} dialog
 * @param {HTMLFormElement} form
 * @param {HTMLElement | null} submitter
 */
function send(dialog, form, submitter) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form, submitter)) fields.append(name, String(value));
  const shown = show(dialog, form.action, { method: "POST", body: fields });
  if (form.matches("[data-copy-link]")) void copyAddress(shown);
}

/** @param {MouseEvent} event */
function onClick(event) {
  const dialog = event.currentTarget;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!(dialog instanceof HTMLDialogElement) || link === null) return;
  if (!new URL(link.href).pathname.startsWith("/.pages/share/")) return;
  event.preventDefault();
  void show(dialog, link.href);
}

/**
 * A choice needs no button where scripts run: it leads to the preview.
 * @param {Element} form
 */
function submitAtOnce(form) {
  const button = form.querySelector('button[value="set"]');
  if (!(form instanceof HTMLFormElement) || !(button instanceof HTMLButtonElement)) return;
  button.classList.add("visually-hidden");
  for (const choice of form.querySelectorAll("select")) {
    choice.addEventListener("change", () => form.requestSubmit(button));
  }
  // A date is complete before all of it has been typed, so it needs the button.
  for (const day of form.querySelectorAll("input[type=date]")) {
    day.addEventListener("input", () => button.classList.remove("visually-hidden"));
  }
}

/**
 * Who is meant needs no name if it is everyone.
 * @param {ParentNode} page
 */
function hideNameWhereNoneIsNeeded(page) {
  const kind = page.querySelector(".share-form select[name=kind]");
  if (!(kind instanceof HTMLSelectElement)) return;
  const update = () => {
    const needsNone = ["authenticated", "everyone"].includes(kind.value);
    for (const part of page.querySelectorAll("[data-who]")) part.toggleAttribute("hidden", needsNone);
  };
  kind.addEventListener("change", update);
  update();
}

/**
 * Copy the address that a page shows, as soon as it is there. The browser must be asked while the
 * click is handled, so it gets a promise.
 * @param {Promise<{content: HTMLElement} | null>} shown
 */
async function copyAddress(shown) {
  const address = async () => {
    const field = (await shown)?.content.querySelector("input[data-address]");
    if (!(field instanceof HTMLInputElement)) throw new Error("no address");
    return field.value;
  };
  try {
    const text = address().then((value) => new Blob([value], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": text })]);
  } catch {
    return; // the page shows the address
  }
  const notice = document.querySelector("dialog[open] [data-copied]");
  if (notice instanceof HTMLElement) notice.textContent = notice.dataset.copied ?? "";
}

/** @param {SubmitEvent} event */
function copyLink(event) {
  const form = event.target;
  if (event.defaultPrevented || !(form instanceof HTMLFormElement) || !form.matches("[data-copy-link]")) return;
  event.preventDefault();
  const dialog = newDialog();
  dialog.dataset.saved = "yes";
  send(dialog, form, event.submitter);
}

/** @param {MouseEvent} event */
function openDialog(event) {
  const link = event.target instanceof Element ? event.target.closest(OPENER) : null;
  if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(link);
}

/** Open the dialog that a link leads to. @param {HTMLAnchorElement} link */
export function open(link) {
  const dialog = newDialog();
  dialog.dataset.close = link.dataset.close ?? "";
  dialog.addEventListener("close", () => link.focus());
  void show(dialog, link.href);
}

document.addEventListener("click", openDialog);
document.addEventListener("submit", copyLink);
for (const form of document.querySelectorAll("form[data-changes]")) submitAtOnce(form);
hideNameWhereNoneIsNeeded(document);
