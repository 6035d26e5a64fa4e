// The page about a container: filter, selection, keys, live changes.

import { showLocalTimes } from "./pods.js";

const MAX_SELECTED = 1000;

/** The list of a container, which works without this script, too. */
export class MemberList {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.selection = /** @type {HTMLFormElement} */ (document.getElementById("selection"));
    /** @type {HTMLInputElement | null} */
    this.last = null;
    this.request = 0;
    /** Names of rows that are selected and not loaded. @type {Set<string>} */
    this.waiting = new Set();
    /** @type {import("./parts.js").Parts | null} */
    this.parts = null;
    /** @type {typeof import("./parts.js").Parts | null} */
    this.Parts = null;
    /** The name of the row that gets the focus as soon as it is in the list. */
    this.goal = "";
  }

  start() {
    void this.startParts();
    this.startFilter();
    this.startSelection();
    watch(this.element.dataset.events, () => this.refresh());
    for (const type of ["scroll", "resize"]) {
      addEventListener(type, () => this.parts?.plan(type === "resize"), { passive: true });
    }
    addEventListener("pagehide", () => {
      history.replaceState({ heights: this.parts?.heights(), top: scrollY }, "");
    });
  }

  /** The rows that are loaded. @returns {HTMLElement[]} */
  rows() {
    return this.parts?.rows() ?? [...this.element.querySelectorAll("[data-name]")].map(
      (row) => /** @type {HTMLElement} */ (row),
    );
  }

  boxes() {
    return this.rows().map((row) => /** @type {HTMLInputElement} */ (row.querySelector("input[name=name]")));
  }

  /** A list that is longer than what the page has of it. Whoever comes back finds the place. */
  async startParts() {
    const more = this.element.querySelector(".more a");
    if (!(more instanceof HTMLAnchorElement)) return;
    const { Parts } = await import("./parts.js");
    this.Parts = Parts;
    if (this.parts || !more.isConnected) return;
    const { heights, top } = /** @type {{ heights?: number[], top?: number }} */ (history.state ?? {});
    this.parts = new Parts(this, more, heights);
    if (heights) scrollTo({ top, behavior: "instant" });
    this.parts.plan();
  }

  isGrid() {
    return this.element.querySelector("ul.tiles") !== null;
  }

  // --- filter --------------------------------------------------------------------------------

  startFilter() {
    const input = document.getElementById("filter");
    if (!(input instanceof HTMLInputElement)) return;
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const url = new URL(location.href);
        url.searchParams.delete("from");
        if (input.value) url.searchParams.set("filter", input.value);
        else url.searchParams.delete("filter");
        history.replaceState(null, "", url);
        this.refresh(false);
      }, 150);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !isTyping(event)) {
        event.preventDefault();
        input.focus();
      }
    });
  }

  /**
   * Show the list as it is now; what is selected, focused and scrolled to stays.
   * @param {boolean} [isSame] whether it is not filtered otherwise
   */
  async refresh(isSame = true) {
    const isTyped = () => this.element.querySelector("[data-typing]") !== null;
    if (isTyped()) return; // comes back afterwards
    const request = ++this.request;
    const response = await fetchPage(location.href);
    if (!response.ok || request !== this.request) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("members");
    const next = fresh?.querySelector(".more a");
    const loaded = isSame && next instanceof HTMLAnchorElement ? await this.parts?.loadShown(next.href) : undefined;
    if (!fresh || isTyped() || request !== this.request) return;
    for (const box of this.boxes()) if (box.checked) this.waiting.add(box.value);
    const focused = document.activeElement?.closest("[data-name]")?.getAttribute("data-name");
    const heights = isSame ? this.parts?.heights() : undefined;
    this.element.replaceChildren(...fresh.childNodes);
    this.parts = this.Parts && next instanceof HTMLAnchorElement ? new this.Parts(this, next, heights, loaded) : null;
    const count = document.getElementById("count");
    const freshCount = page.getElementById("count");
    if (count && freshCount && count.textContent !== freshCount.textContent) {
      count.textContent = freshCount.textContent;
    }
    this.chooseAgain(this.rows());
    if (!this.parts || !isSame) this.waiting.clear();
    const goal = this.goal ? this.row(this.goal)?.querySelector("a") : null;
    if (goal) {
      this.goal = "";
      goal.focus();
    } else if (focused) this.row(focused)?.querySelector("a")?.focus({ preventScroll: true });
    showLocalTimes();
    this.showCount();
    if (this.parts) this.parts.plan();
    else void this.startParts();
  }

  /**
   * @param {string} name
   * @returns {HTMLElement | null}
   */
  row(name) {
    return this.element.querySelector(`[data-name="${CSS.escape(name)}"]`);
  }

  // --- selection -----------------------------------------------------------------------------

  startSelection() {
    this.element.addEventListener("click", (event) => this.clicked(/** @type {MouseEvent} */ (event)));
    this.element.addEventListener("change", () => this.showCount());
    this.element.addEventListener("keydown", (event) => this.pressed(event));
    const clear = this.selection.querySelector("[data-clear]");
    clear?.removeAttribute("hidden");
    const rename = this.selection.querySelector("[data-rename]");
    rename?.addEventListener("click", () => this.rename(/** @type {HTMLElement} */ (rename)));
    clear?.addEventListener("click", () => this.clear());
    // What is selected and not in the list just now goes along.
    this.selection.addEventListener("formdata", ({ formData }) => {
      const away = this.boxes().filter((box) => box.checked && !box.isConnected).map((box) => box.value);
      for (const name of [...away, ...this.waiting]) formData.append("name", name);
    });
    this.showCount();
  }

  /** A click on a box with Shift selects everything between it and the last one. @param {MouseEvent} event */
  clicked(event) {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || box.name !== "name") return;
    if (event.shiftKey && this.last) {
      const all = this.boxes();
      const [from, to] = [all.indexOf(this.last), all.indexOf(box)].sort((a, b) => a - b);
      if (from >= 0) for (const each of all.slice(from, to + 1)) each.checked = box.checked;
    }
    this.last = box;
    this.showCount();
  }

  /** Arrow keys, Home and End move between rows, Space selects, Ctrl+A selects all, Escape nothing. @param {KeyboardEvent} event */
  pressed(event) {
    const row = /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (event.target).closest("[data-name]"));
    const isText = event.target instanceof HTMLInputElement && event.target.type === "text";
    if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.chooseAll();
    } else if (event.key === "Escape") {
      this.clear();
    } else if (row && !event.altKey && !isText) {
      const last = (this.parts?.count ?? this.rows().length) - 1;
      const index = this.indexOf(row);
      const step = this.step(event.key);
      const goal = event.key === "Home" ? 0 : event.key === "End" ? last : step ? index + step : -1;
      if (goal < 0 || goal > last) return;
      event.preventDefault();
      void this.go(row, goal, event.target instanceof HTMLInputElement, event.shiftKey && step !== 0);
    }
  }

  /**
   * Give another row the focus.
   * @param {HTMLElement} row
   * @param {number} index
   * @param {boolean} isBox whether its box gets it
   * @param {boolean} selects whether both rows are selected
   */
  async go(row, index, isBox, selects) {
    const next = await this.at(index);
    const goal = next?.querySelector(isBox ? "input[name=name]" : "a");
    if (goal instanceof HTMLElement) goal.focus();
    if (!next || !selects) return;
    for (const each of [row, next]) {
      /** @type {HTMLInputElement} */ (each.querySelector("input[name=name]")).checked = true;
    }
    this.showCount();
  }

  /** How many rows further a key leads; 0 for other keys. @param {string} key */
  step(key) {
    const columns = this.columns();
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: columns, ArrowUp: -columns };
    if (this.isGrid()) Object.assign(steps, { ArrowRight: 1, ArrowLeft: -1 });
    return steps[key] ?? 0;
  }

  columns() {
    const grid = this.element.querySelector("ul.tiles");
    return grid ? getComputedStyle(grid).gridTemplateColumns.split(" ").length : 1;
  }

  /** @param {HTMLElement} row */
  indexOf(row) {
    return this.parts ? this.parts.indexOf(row) : this.rows().indexOf(row);
  }

  /**
   * The row at an index, which is loaded if need be.
   * @param {number} index
   * @returns {Promise<HTMLElement | undefined>}
   */
  async at(index) {
    return this.parts ? this.parts.at(index) : this.rows()[index];
  }

  /**
   * The row so many rows further, if there is one.
   * @param {HTMLElement} row
   * @param {number} step
   */
  next(row, step) {
    return this.at(this.indexOf(row) + step);
  }

  /** Select as much as pages take at once. */
  async chooseAll() {
    await this.parts?.loadFirst(MAX_SELECTED);
    for (const box of this.boxes().slice(0, MAX_SELECTED)) box.checked = true;
    this.showCount();
  }

  clear() {
    this.waiting.clear();
    for (const box of this.boxes()) box.checked = false;
    this.showCount();
  }

  /** Select rows again that were selected before the list was new. @param {HTMLElement[]} rows */
  chooseAgain(rows) {
    if (!this.waiting.size) return;
    for (const row of rows) {
      const box = /** @type {HTMLInputElement} */ (row.querySelector("input[name=name]"));
      if (this.waiting.delete(box.value)) box.checked = true;
    }
  }

  showCount() {
    const count = this.boxes().filter((box) => box.checked).length + this.waiting.size;
    const output = document.getElementById("selected");
    if (output) output.textContent = (output.dataset.text ?? "").replace("{number}", String(count));
    this.selection.classList.toggle("shown", count > 0);
    const rename = this.selection.querySelector("[data-rename]");
    if (rename) /** @type {HTMLElement} */ (rename).hidden = count !== 1;
  }

  /** Open the page for renaming the one that is selected. @param {HTMLElement} button */
  rename(button) {
    const box = this.boxes().find((each) => each.checked);
    if (box) location.assign((button.dataset.rename ?? "") + box.value);
  }
}

/**
 * The page as it is now. A person who has been signed out meanwhile is led to the sign-in, so that
 * nothing stays on the screen.
 * @param {string} address
 */
export async function fetchPage(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  if (response.redirected) location.reload();
  return response;
}

/**
 * Call back when the resource of the page may have changed; several changes at once are one. A page
 * that nobody sees does not listen, since browsers have few connections to one server for all pages.
 * @param {string | undefined} address
 * @param {() => void} changed
 */
export function watch(address, changed) {
  if (!address) return;
  let timer = 0;
  /** @type {EventSource | null} */
  let events = null;
  const listen = () => {
    events = new EventSource(address);
    events.addEventListener("message", () => {
      clearTimeout(timer);
      timer = setTimeout(changed, 200);
    });
  };
  const stop = () => {
    events?.close();
    events = null;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else if (!events) {
      listen();
      changed();
    }
  });
  addEventListener("pagehide", stop);
  if (!document.hidden) listen();
}

/** @param {KeyboardEvent} event */
export function isTyping(event) {
  return event.target instanceof Element && event.target.closest("input, textarea, select") !== null;
}

/** The dialog about access is loaded when somebody wants it. @param {MouseEvent} event */
async function share(event) {
  const link = event.target instanceof Element ? event.target.closest("a[data-share]") : null;
  if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  document.removeEventListener("click", share);
  const sharing = await import("./sharing.js").catch(() => null);
  if (sharing) sharing.open(link);
  else location.assign(link.href);
}

const members = document.getElementById("members");
/** The list of the page, if it is about a container. */
export const list = members && new MemberList(members);
list?.start();
if (list) document.addEventListener("click", share);
