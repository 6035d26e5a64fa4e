// Rows that are dragged onto a folder of the list, or of the way to it, are moved there.

import { list } from "./files.js";
import { pathOf, refreshTo, rowOf, say, send } from "./rows.js";

const FILES = "/.pages/files";
const SLOP = 6;
const EDGE = 48;

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
  const fields = new URLSearchParams({ selection: "yes", go: "yes", conflict: "keep", to: folder.path });
  for (const row of rows) fields.append("name", /** @type {HTMLInputElement} */ (row.querySelector("input")).value);
  const { text } = await send(`/.pages/move${list.element.dataset.target}`, fields);
  say(text);
  await refreshTo(rowOf(folder.element)?.dataset.name);
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
