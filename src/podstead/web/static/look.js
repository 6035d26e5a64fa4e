// Quick look: what is in a document, in a dialog above the list, from one document to the next.

import { list } from "./files.js";
import { closeByBack } from "./dialogs.js";
import { addStyles } from "./pods.js";
import { focusOn, fetched, pathOf } from "./rows.js";

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("look"));
const title = /** @type {HTMLElement} */ (dialog.querySelector("h2"));
const view = /** @type {HTMLElement} */ (dialog.querySelector(".look-view"));
const details = /** @type {HTMLAnchorElement} */ (dialog.querySelector("[data-look=details]"));
/** The name of the document that is shown. */
let shown = "";

/** @param {HTMLElement | null | undefined} row */
const isDocument = (row) => row != null && !pathOf(row).endsWith("/");

/** The next document in a direction. @param {number} step */
async function neighbour(step) {
  const row = list?.row(shown);
  if (!list || !row) return null;
  for (let at = step; ; at += step) {
    const found = await list.next(row, at);
    if (!found || isDocument(found)) return found ?? null;
  }
}

const styles = addStyles("document.css");

/** Show what is in a document. @param {HTMLElement} row */
export async function open(row) {
  await styles;
  const path = pathOf(row);
  const address = `/.pages/files${path}`;
  shown = row.dataset.name ?? "";
  title.textContent = shown;
  details.href = address;
  view.replaceChildren();
  view.removeAttribute("aria-busy"); // with the one before, which may not have arrived
  if (!dialog.open) {
    dialog.showModal();
    closeByBack(dialog);
  }
  if (row.querySelector(".kind-image")) {
    const picture = document.createElement("img");
    picture.alt = shown;
    picture.src = `/.pages/raw${path}`;
    view.append(picture);
  } else {
    view.setAttribute("aria-busy", "true");
    const page = await fetched(address);
    if (title.textContent !== row.dataset.name) return; // another one is shown meanwhile
    view.removeAttribute("aria-busy");
    const found = page.querySelector("section.view");
    for (const link of found?.querySelectorAll("a") ?? []) {
      link.href = new URL(link.getAttribute("href") ?? "", new URL(address, location.href)).href;
    }
    view.replaceChildren(...(found?.childNodes ?? []));
  }
  const steps = await Promise.all([neighbour(-1), neighbour(1)]);
  if (title.textContent !== row.dataset.name) return;
  for (const [at, name] of ["previous", "next"].entries()) {
    /** @type {HTMLButtonElement} */ (dialog.querySelector(`[data-look=${name}]`)).disabled = !steps[at];
  }
}

/** @param {number} step */
async function go(step) {
  const row = await neighbour(step);
  if (row && dialog.open) void open(row);
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
  focusOn(list?.row(shown));
});
