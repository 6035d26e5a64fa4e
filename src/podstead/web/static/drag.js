// Rows that are dragged onto a folder of the list, or of the way to it, are moved there.

import { list } from "./files.js";
import { addStyles } from "./pods.js";
import { menu, pathOf, refreshTo, rowOf, say } from "./rows.js";

const FILES = "/.pages/files";
const SLOP = 6;
const EDGE = 48;

void addStyles("more.css");

/** @type {{ row: HTMLElement, x: number, y: number, id: number } | null} */
let pressedRow = null;
/** The label at the pointer while something is dragged. @type {HTMLElement | null} */
let label = null;
/** @type {Element | null} */
let goal = null;

/** The rows that go along: those that are selected, if this one is. @param {HTMLElement} row */
function dragged(row) {
  const selected = (list?.boxes() ?? []).filter((box) => box.checked).map((box) => rowOf(box));
  return selected.includes(row) ? /** @type {HTMLElement[]} */ (selected) : [row];
}

/** The folder at a place of the window: the element and its path. @param {PointerEvent} event */
function folderAt(event) {
  const at = document.elementFromPoint(event.clientX, event.clientY);
  const crumb = at?.closest(".crumbs a");
  if (crumb instanceof HTMLAnchorElement && crumb.pathname.startsWith(`${FILES}/`)) {
    return { element: crumb, path: crumb.pathname.slice(FILES.length) };
  }
  const row = rowOf(at ?? null);
  if (!row || !pressedRow || dragged(pressedRow.row).includes(row)) return null;
  const path = pathOf(row);
  return path.endsWith("/") ? { element: row, path } : null;
}

/** @param {Element | null} element */
function mark(element) {
  if (goal === element) return;
  goal?.classList.remove("drop-here");
  element?.classList.add("drop-here");
  goal = element;
}

/** @param {PointerEvent} event */
function moved(event) {
  if (!pressedRow || event.pointerId !== pressedRow.id) return;
  if (!event.buttons) return stop(); // it was released while this script was loaded
  const { row, x, y } = pressedRow;
  if (!label) {
    if (Math.hypot(event.clientX - x, event.clientY - y) < SLOP) return;
    const rows = dragged(row);
    label = document.createElement("div");
    label.className = "dragged";
    label.textContent = rows.length > 1 ? String(rows.length) : (row.dataset.name ?? "");
    document.body.append(label);
    document.body.classList.add("dragging");
    list?.element.setPointerCapture(event.pointerId);
  }
  label.style.translate = `${event.clientX + 12}px ${event.clientY + 12}px`;
  mark(folderAt(event)?.element ?? null);
  if (event.clientY < EDGE) scrollBy(0, -EDGE / 3);
  else if (event.clientY > innerHeight - EDGE) scrollBy(0, EDGE / 3);
}

/** @param {PointerEvent} event */
async function dropped(event) {
  const from = pressedRow;
  const folder = label && folderAt(event);
  const rows = from && folder ? dragged(from.row) : [];
  stop();
  if (!folder || !rows.length || !list) return;
  const source = list.element.dataset.target ?? "";
  const names = rows.map((row) => /** @type {HTMLInputElement} */ (row.querySelector("input")).value);
  const { done, problem } = await move(source, folder.path, names, "keep");
  const name = decodeURIComponent(folder.path.split("/").at(-2) ?? "");
  const undo = async () => {
    // Those that have got another name there keep it.
    const back = await move(folder.path, source, done.map((path) => path.slice(folder.path.length)), "skip");
    say(back.problem || (menu.dataset.movedBack ?? ""));
    await refreshTo(from?.row.dataset.name);
  };
  say(problem || (menu.dataset.moved ?? "").replace("{folder}", () => name), done.length ? () => void undo() : undefined);
  await refreshTo(rowOf(folder.element)?.dataset.name);
}

/**
 * Move members of a folder into another one.
 * @param {string} from
 * @param {string} to
 * @param {string[]} names
 * @param {"keep" | "skip"} conflict what becomes of those whose names are taken: both are kept, or they stay
 * @returns {Promise<{ done: string[], problem: string }>} the new paths, and why others did not go
 */
async function move(from, to, names, conflict) {
  const token = document.body.dataset.csrfToken ?? "";
  const fields = new URLSearchParams({ csrf_token: token, selection: "yes", go: "yes", conflict, to });
  for (const name of names) fields.append("name", name);
  const options = { method: "POST", headers: { Accept: "application/json" }, body: fields };
  try {
    const text = await (await fetch(`/.pages/move${from}`, options)).text();
    const message = /"message": ?("(?:[^"\\]|\\.)*")/.exec(text)?.[1];
    return { done: JSON.parse(text).done ?? [], problem: message ? JSON.parse(message) : "" };
  } catch {
    // Nothing answered, or only a proxy.
    return { done: [], problem: menu.dataset.offline ?? "" };
  }
}

function stop() {
  pressedRow = null;
  label?.remove();
  label = null;
  mark(null);
  document.body.classList.remove("dragging");
}

/**
 * The pointer was pressed on a row, and may be about to drag it.
 * @param {HTMLElement} row
 * @param {PointerEvent} event
 */
export function begin(row, event) {
  pressedRow = { row, x: event.clientX, y: event.clientY, id: event.pointerId };
}

addEventListener("pointermove", moved);
addEventListener("pointerup", (event) => void dropped(event));
addEventListener("pointercancel", stop);
addEventListener("keydown", (event) => event.key === "Escape" && stop());
