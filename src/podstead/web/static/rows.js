// What is done with one row of the list of files: its menu, its new name, deleting it.

import { isTyping, list } from "./files.js";

export const menu = /** @type {HTMLElement} */ (document.getElementById("row-menu"));
const said = /** @type {HTMLElement} */ (document.getElementById("said"));
const members = /** @type {HTMLElement} */ (document.getElementById("members"));
/** The row that the menu is about. @type {HTMLElement | null} */
let current = null;
/** Whether a finger is on a row. */
let isTouched = false;

/** @param {Element} row */
export const pathOf = (row) =>
  members.dataset.target + /** @type {HTMLInputElement} */ (row.querySelector("input")).value;

/** @param {EventTarget | null} target */
export const rowOf = (target) =>
  /** @type {HTMLElement | null} */ (target instanceof Element ? target.closest("[data-name]") : null);

/** @param {Element | null | undefined} row */
export const focusOn = (row) => row?.querySelector("a")?.focus({ preventScroll: false });

// --- asking the server -------------------------------------------------------------------------

/** @param {string} html */
const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

/**
 * Send the form of a page, and find what the page says afterwards.
 * @param {string} address
 * @param {URLSearchParams} fields
 */
export async function send(address, fields) {
  fields.set("csrf_token", document.body.dataset.csrfToken ?? "");
  const response = await fetch(address, {
    method: "POST",
    headers: { Accept: "text/html" },
    body: fields,
  }).catch(() => null);
  if (!response) return { isDone: false, text: menu.dataset.offline ?? "" };
  const page = parsed(await response.text());
  const isDone = response.ok && response.redirected;
  const text = page.querySelector(isDone ? "main > [role=status]" : "main .error, main .alarm");
  return { isDone, text: (text ?? page.querySelector("h1"))?.textContent?.trim() ?? "" };
}

/**
 * Say what was done or went wrong, until something else is done.
 * @param {string} text
 * @param {() => void} [undo]
 */
export function say(text, undo) {
  said.textContent = text;
  said.hidden = false;
  if (!undo) return;
  const button = document.createElement("button");
  button.className = "plain small";
  button.textContent = menu.dataset.undo ?? "";
  button.addEventListener("click", undo);
  said.append(" ", button);
}

/** Show the list as it is now, with the focus on a row. @param {string | undefined} name */
export async function refreshTo(name) {
  if (list) list.goal = name ?? "";
  await list?.refresh();
}

// --- the menu ----------------------------------------------------------------------------------

/**
 * @param {HTMLElement} row
 * @param {{ clientX: number, clientY: number } | null} at where it opens; `null` for the row's button
 */
function openMenu(row, at) {
  current = row;
  const path = pathOf(row);
  const kind = path.endsWith("/") ? "folder" : "document";
  for (const item of menu.children) {
    const only = /** @type {HTMLElement} */ (item).dataset.only;
    const star = item.querySelector("[data-do=star]")?.getAttribute("value");
    const isStarred = row.querySelector(".star") !== null;
    /** @type {HTMLElement} */ (item).hidden = star ? (star === "no") !== isStarred : only !== undefined && only !== kind;
    const link = item.querySelector("a");
    if (link) link.href = (link.dataset.href ??= link.getAttribute("href") ?? "").replace("{path}", () => path);
  }
  const button = /** @type {HTMLElement} */ (row.querySelector("button.do"));
  if (at) focusOn(row);
  else button.focus();
  button.setAttribute("aria-expanded", "true");
  menu.setAttribute("aria-label", button.getAttribute("aria-label") ?? "");
  menu.popover = isTouched ? "manual" : "auto"; // which a finger that leaves beside it would close
  menu.showPopover();
  const { bottom, right, top } = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const x = at ? at.clientX : right - width;
  const y = at ? at.clientY : bottom;
  menu.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 4))}px`;
  const fits = y + height < innerHeight - 4;
  menu.style.top = `${Math.max(4, fits ? y : (at ? y : top) - height)}px`;
  items()[0]?.focus();
}

const items = () =>
  /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("li:not([hidden]) [role^=menuitem]")]);

/** @param {KeyboardEvent} event */
function pressedInMenu(event) {
  const all = items();
  const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const { key } = event;
  let goal;
  if (key === "ArrowDown") goal = all[(at + 1) % all.length];
  else if (key === "ArrowUp") goal = all[(at - 1 + all.length) % all.length];
  else if (key === "Home") goal = all[0];
  else if (key === "End") goal = all[all.length - 1];
  else if (key === " ") all[at]?.click();
  else if (key === "Tab") menu.hidePopover();
  else if (key === "Escape" && menu.popover === "manual") {
    menu.hidePopover();
    focusOn(current);
  } else if (key.length === 1 && !event.ctrlKey && !event.metaKey) {
    const rest = [...all.slice(at + 1), ...all.slice(0, at + 1)];
    goal = rest.find((each) => each.textContent?.trim().toLowerCase().startsWith(key.toLowerCase()));
  } else return;
  event.preventDefault();
  event.stopPropagation();
  goal?.focus();
}

/** What scripts do themselves; all else are links. @type {Record<string, ((row: HTMLElement) => void) | undefined>} */
export const DOES = { rename: renameHere, delete: deleteHere, star, look };

/** @param {MouseEvent} event */
function chosen(event) {
  const link = event.target instanceof Element ? event.target.closest("[data-do]") : null;
  if (!(link instanceof HTMLElement) || event.ctrlKey || event.metaKey || !current) return;
  const does = DOES[link.dataset.do ?? ""];
  if (does) event.preventDefault();
  menu.hidePopover();
  does?.(current);
}

function startMenu() {
  menu.addEventListener("keydown", pressedInMenu);
  menu.addEventListener("click", chosen);
  menu.addEventListener("toggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState !== "closed") return;
    for (const each of members.querySelectorAll("button.do[aria-expanded=true]")) {
      each.setAttribute("aria-expanded", "false");
    }
  });
  members.addEventListener("contextmenu", (event) => {
    const row = rowOf(event.target);
    if (!row || event.shiftKey || (event.target instanceof HTMLInputElement && event.target.type === "text")) return;
    event.preventDefault();
    if (!menu.matches(":popover-open")) openMenu(row, event.button === 2 || event.clientX ? event : null);
  });
  members.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button.do") : null;
    const row = rowOf(button);
    if (!row) return;
    event.preventDefault();
    openMenu(row, null);
  });
  const tellWhatOpens = () => {
    for (const button of members.querySelectorAll("button.do:not([aria-haspopup])")) {
      button.setAttribute("aria-haspopup", "menu");
      button.setAttribute("aria-expanded", "false");
    }
  };
  tellWhatOpens();
  new MutationObserver(tellWhatOpens).observe(members, { childList: true, subtree: true });
  startLongPress();
}

/** A finger that stays on a row opens its menu, where browsers have no menu of their own for that. */
function startLongPress() {
  let timer = 0;
  let [x, y] = [0, 0];
  let wasLong = false;
  const stop = () => clearTimeout(timer);
  document.addEventListener(
    "pointerdown",
    (event) => {
      wasLong = false;
      const isBeside = event.target instanceof Node && !menu.contains(event.target);
      if (isBeside && menu.popover === "manual" && menu.matches(":popover-open")) menu.hidePopover();
    },
    { capture: true },
  );
  members.addEventListener("pointerdown", (event) => {
    const row = rowOf(event.target);
    if (event.pointerType !== "touch" || !row) return;
    isTouched = true;
    [x, y] = [event.clientX, event.clientY];
    timer = setTimeout(() => menu.matches(":popover-open") || openMenu(row, event), 600);
  });
  members.addEventListener("pointermove", (event) => {
    if (Math.hypot(event.clientX - x, event.clientY - y) > 10) stop();
  });
  menu.addEventListener("beforetoggle", (event) => {
    if (isTouched && event.newState === "open") wasLong = true;
  });
  for (const type of ["pointerup", "pointercancel"]) {
    members.addEventListener(type, () => {
      stop();
      isTouched = false;
    });
  }
  // What lies under the finger by now, which may be the menu, is not what was meant.
  document.addEventListener(
    "click",
    (event) => {
      if (!wasLong) return;
      wasLong = false;
      event.preventDefault();
      event.stopPropagation();
    },
    { capture: true },
  );
}

// --- another name ------------------------------------------------------------------------------

/** Whether the menu of the page has this, because the person may do it. @param {string} name */
export const isOffered = (name) => menu.querySelector(`[data-do="${name}"]`) !== null;

/** The name becomes a field: Enter renames, Escape does not. @param {HTMLElement} row */
function renameHere(row) {
  const link = row.querySelector("a");
  const title = row.querySelector(".title");
  if (!link || !title || row.querySelector("[data-typing]")) return;
  const name = title.textContent ?? "";
  const input = document.createElement("input");
  input.type = "text";
  input.value = name;
  input.dataset.typing = "";
  input.autocomplete = "off";
  input.spellcheck = false;
  input.setAttribute("aria-label", menu.dataset.newName ?? "");
  link.hidden = true;
  link.after(input);
  input.focus();
  const dot = pathOf(row).endsWith("/") ? -1 : name.lastIndexOf(".");
  input.setSelectionRange(0, dot > 0 ? dot : name.length);
  let isOver = false;
  const end = () => {
    isOver = true;
    input.remove();
    link.hidden = false;
  };
  const commit = async () => {
    const wanted = input.value.trim();
    if (isOver || input.readOnly) return;
    if (wanted === name || !wanted) {
      end();
      focusOn(row);
      return;
    }
    input.readOnly = true;
    const { isDone, text } = await send(`/.pages/rename${pathOf(row)}`, new URLSearchParams({ new_name: wanted }));
    input.readOnly = false;
    say(text);
    if (isDone) {
      end();
      await refreshTo(wanted);
    } else {
      input.setAttribute("aria-invalid", "true");
      input.focus();
    }
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") {
      event.preventDefault();
      void commit();
    } else if (event.key === "Escape") {
      end();
      focusOn(row);
      void list?.refresh();
    }
  });
  input.addEventListener("blur", () => {
    // Whoever looks at another window comes back to the field.
    if (document.hasFocus() && !input.hasAttribute("aria-invalid")) void commit();
    else if (document.hasFocus() && !isOver) end();
  });
}

/** Give the row a star, or take it away. @param {HTMLElement} row */
async function star(row) {
  const fields = new URLSearchParams({ on: row.querySelector(".star") ? "no" : "yes" });
  const { text } = await send(`/.pages/star${pathOf(row)}`, fields);
  say(text);
  await refreshTo(row.dataset.name);
}

/** @param {string} address */
export async function fetched(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  return parsed((await response?.text()) ?? "");
}

// --- what is loaded when it is needed ------------------------------------------------------------

/** Delete a document at once if it can be restored; the page asks about all else. @param {HTMLElement} row */
async function deleteHere(row) {
  (await import("./deleting.js")).deleteRow(row);
}

/** @type {import("./look.js").Rows} */
const looked = {
  again: (row) => list?.row(row.dataset.name ?? ""),
  next: async (row, step) => list?.next(row, step),
  pathOf,
  focusOn,
};

/** Show what is in a document. @param {HTMLElement} row */
async function look(row) {
  if (pathOf(row).endsWith("/")) return;
  (await import("./look.js")).open(row, looked);
}

/** A click on the picture of a document. @param {MouseEvent} event */
function clickedPicture(event) {
  const row = rowOf(event.target instanceof Element ? event.target.closest(".picture") : null);
  if (!row || pathOf(row).endsWith("/") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  void look(row);
}

/** @param {PointerEvent} event */
async function pressedPointer(event) {
  const row = rowOf(event.target);
  const isControl = event.target instanceof Element && event.target.closest("input, button");
  if (event.pointerType === "touch" || event.button !== 0 || !row || isControl) return;
  (await import("./drag.js")).begin(row, event);
}

// --- keys --------------------------------------------------------------------------------------

/** Ctrl+Z undoes what the page offers to undo. @param {KeyboardEvent} event */
function pressedUndo(event) {
  const undo = said.querySelector("button");
  if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || isTyping(event) || !undo) return;
  event.preventDefault();
  undo.click();
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const row = rowOf(event.target);
  if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "F2" && isOffered("rename")) renameHere(row);
  else if (event.key === " " && event.target instanceof HTMLAnchorElement) void look(row);
  else if (event.key === "Delete" && isOffered("delete")) deleteRows(row);
  else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) openMenu(row, null);
  else return;
  event.preventDefault();
}

/** What is selected, or the row if nothing else is. @param {HTMLElement} row */
function deleteRows(row) {
  const selected = list?.boxes().filter((box) => box.checked) ?? [];
  const isOther = selected.length > 1 || (selected[0] && rowOf(selected[0]) !== row);
  if (isOther) /** @type {HTMLElement} */ (list?.selection.querySelector("[formaction*='/delete/']"))?.click();
  else void deleteHere(row);
}

if (list) {
  startMenu();
  members.addEventListener("keydown", pressed);
  document.addEventListener("keydown", pressedUndo);
  members.addEventListener("click", clickedPicture);
  if (isOffered("move")) {
    // Whoever presses a row and moves at once does not wait for the script.
    members.addEventListener("pointermove", () => void import("./drag.js"), { once: true });
    members.addEventListener("pointerdown", (event) => void pressedPointer(event));
  }
  members.addEventListener("dragstart", (event) => event.preventDefault());
}
