// Deleting a row, and bringing it back from the trash.

import { list } from "./files.js";
import { fetched, menu, pathOf, refreshTo, say, send } from "./rows.js";

/** Delete a document at once if it can be restored; the page asks about all else. @param {HTMLElement} row */
export async function deleteRow(row) {
  const path = pathOf(row);
  const { trash } = menu.dataset;
  if (path.endsWith("/") || !trash || !(await isKept(trash))) {
    location.assign(`/.pages/delete${path}`);
    return;
  }
  const neighbour = ((await list?.next(row, 1)) ?? (await list?.next(row, -1)))?.dataset.name;
  const { isDone, text } = await send(`/.pages/delete${path}`, new URLSearchParams({ confirm: "yes" }));
  say(text, isDone ? () => restore(trash, path) : undefined);
  if (isDone) await refreshTo(neighbour);
}

/** Whether what is deleted goes to the trash. @param {string} trash */
async function isKept(trash) {
  const days = (await fetched(trash)).querySelector("[data-kept-days]")?.getAttribute("data-kept-days");
  return Number(days) > 0;
}

/**
 * Restore what was deleted last at a path.
 * @param {string} trash
 * @param {string} path
 */
async function restore(trash, path) {
  const page = await fetched(trash);
  const field = page.querySelector(`input[name=path][value="${CSS.escape(path)}"]`);
  const form = field instanceof HTMLInputElement ? field.form : null;
  if (!form) return say(menu.dataset.notRestored ?? "");
  const fields = new URLSearchParams({ do: "restore" });
  for (const each of form.querySelectorAll("input")) fields.set(each.name, each.value);
  const { text } = await send(form.getAttribute("action") ?? "", fields);
  say(text);
  const name = decodeURIComponent(path.slice(path.lastIndexOf("/") + 1));
  await refreshTo(name);
}
