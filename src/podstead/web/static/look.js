// Quick look: what is in a document, in a dialog above a list or photos, from one to the next.

import { closeByBack } from "./dialogs.js";
import { addStyles } from "./pods.js";

/**
 * What the documents are in.
 * @typedef {object} Rows
 * @property {(row: HTMLElement) => HTMLElement | null | undefined} again a row as it is there now
 * @property {(row: HTMLElement, step: number) => Promise<HTMLElement | undefined>} next the row so many further
 * @property {(row: HTMLElement) => string} pathOf
 * @property {(row: HTMLElement) => void} focusOn
 */

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("look"));
const title = /** @type {HTMLElement} */ (dialog.querySelector("h2"));
const view = /** @type {HTMLElement} */ (dialog.querySelector(".look-view"));
const details = /** @type {HTMLAnchorElement} */ (dialog.querySelector("[data-look=details]"));
/** @type {Rows} */
let rows;
/** The row of the document that is shown. @type {HTMLElement} */
let shown;

/** The next document in a direction. @param {number} step */
async function neighbour(step) {
  const row = rows.again(shown);
  for (let at = step; row; at += step) {
    const found = await rows.next(row, at);
    if (!found || !rows.pathOf(found).endsWith("/")) return found ?? null;
  }
  return null;
}

const styles = addStyles("document.css");

/**
 * Show what is in a document.
 * @param {HTMLElement} row
 * @param {Rows} among
 */
export async function open(row, among) {
  await styles;
  rows = among;
  shown = row;
  const path = rows.pathOf(row);
  const address = `/.pages/files${path}`;
  title.textContent = row.dataset.name ?? "";
  details.href = address;
  view.replaceChildren();
  view.removeAttribute("aria-busy"); // with the one before, which may not have arrived
  if (!dialog.open) {
    dialog.showModal();
    closeByBack(dialog);
  }
  if (row.querySelector(".kind-image")) {
    const picture = document.createElement("img");
    picture.alt = row.dataset.name ?? "";
    picture.src = `/.pages/raw${path}`;
    view.append(picture);
  } else {
    view.setAttribute("aria-busy", "true");
    const response = await fetch(address, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (shown !== row) return; // another one is shown meanwhile
    view.removeAttribute("aria-busy");
    const found = page.querySelector("section.view");
    for (const link of found?.querySelectorAll("a") ?? []) {
      link.href = new URL(link.getAttribute("href") ?? "", new URL(address, location.href)).href;
    }
    view.replaceChildren(...(found?.childNodes ?? []));
  }
  const steps = await Promise.all([neighbour(-1), neighbour(1)]);
  if (shown !== row) return;
  for (const [at, name] of ["previous", "next"].entries()) {
    const button = /** @type {HTMLButtonElement} */ (dialog.querySelector(`[data-look=${name}]`));
    if (!steps[at] && button === document.activeElement) title.focus(); // or keys would lead nowhere
    button.disabled = !steps[at];
  }
  const next = steps[1]?.querySelector(".kind-image") ? steps[1] : null;
  if (next) new Image().src = `/.pages/raw${rows.pathOf(next)}`; // so that nobody waits for it
}

/** @param {number} step */
async function go(step) {
  const row = await neighbour(step);
  if (row && dialog.open) void open(row, rows);
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const { target, key } = event;
  if (target instanceof HTMLMediaElement || event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "ArrowRight") void go(1);
  else if (key === "ArrowLeft") void go(-1);
  else if (key === " " && !(target instanceof HTMLButtonElement)) dialog.close();
  else return;
  event.preventDefault();
}

/** A finger that goes across turns to the next one. */
function startSwipe() {
  let [x, y] = [0, 0];
  view.addEventListener("pointerdown", (event) => ([x, y] = [event.clientX, event.clientY]));
  view.addEventListener("pointerup", (event) => {
    const across = event.clientX - x;
    if (event.pointerType === "mouse" || Math.abs(across) < 60) return;
    if (Math.abs(across) > 2 * Math.abs(event.clientY - y)) void go(across < 0 ? 1 : -1);
  });
}

startSwipe();
dialog.addEventListener("keydown", pressed);
dialog.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-look]") : null;
  const what = button?.getAttribute("data-look");
  if (what === "close" || event.target === dialog) dialog.close();
  else if (what === "previous") void go(-1);
  else if (what === "next") void go(1);
});
dialog.addEventListener("close", () => {
  view.replaceChildren(); // what plays ends
  const row = rows.again(shown);
  if (row) rows.focusOn(row);
});
