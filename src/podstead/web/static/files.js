// The pages about containers and documents: more rows on scroll, filter, selection, live changes.

import { showLocalTimes } from "./pods.js";

/** The list of a container, which works without this script, too. */
export class MemberList {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.selection = /** @type {HTMLFormElement} */ (document.getElementById("selection"));
    /** @type {HTMLInputElement | null} */
    this.last = null;
    this.loading = false;
    this.request = 0;
    /** The name of the row that gets the focus as soon as it is in the list. */
    this.goal = "";
  }

  start() {
    this.watchEnd();
    this.startFilter();
    this.startSelection();
    this.startLive();
    void this.startPlace();
  }

  /** @returns {HTMLInputElement[]} */
  boxes() {
    return [...this.element.querySelectorAll("input[name=name]")].map(
      (box) => /** @type {HTMLInputElement} */ (box),
    );
  }

  // --- more rows -----------------------------------------------------------------------------

  watchEnd() {
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) this.loadMore(observer);
      },
      { rootMargin: "1200px" },
    );
    const end = this.element.querySelector(".more");
    if (end) observer.observe(end);
  }

  /** @param {IntersectionObserver} observer */
  async loadMore(observer) {
    const end = this.element.querySelector(".more");
    const link = end?.querySelector("a");
    if (!end || !link || this.loading) return;
    this.loading = true;
    observer.disconnect();
    try {
      const rows = await fetchRows(new URL(link.href), this.isGrid());
      end.replaceWith(...rows);
      showLocalTimes(rows);
    } catch {
      return; // the link stays, for another try
    } finally {
      this.loading = false;
    }
    this.watchEnd();
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
        this.refresh();
      }, 150);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !isTyping(event)) {
        event.preventDefault();
        input.focus();
      }
    });
  }

  /** Show the list as it is now; what is selected, focused and scrolled to stays. */
  async refresh() {
    const isTyped = () => this.element.querySelector("[data-typing]") !== null;
    if (isTyped()) return; // comes back afterwards
    const request = ++this.request;
    const response = await fetchPage(location.href);
    if (!response.ok || request !== this.request) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("members");
    if (!fresh || isTyped()) return;
    const chosen = new Set(this.boxes().filter((box) => box.checked).map((box) => box.value));
    const focused = document.activeElement?.closest("[data-name]")?.getAttribute("data-name");
    this.element.replaceChildren(...fresh.childNodes);
    const count = document.getElementById("count");
    const freshCount = page.getElementById("count");
    if (count && freshCount && count.textContent !== freshCount.textContent) {
      count.textContent = freshCount.textContent;
    }
    for (const box of this.boxes()) box.checked = chosen.has(box.value);
    const goal = this.goal ? this.row(this.goal)?.querySelector("a") : null;
    if (goal) {
      this.goal = "";
      goal.focus();
    } else if (focused) this.row(focused)?.querySelector("a")?.focus({ preventScroll: true });
    showLocalTimes();
    this.showCount();
    this.watchEnd();
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
    clear?.addEventListener("click", () => this.choose(() => false));
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

  /** Arrow keys move between rows, Space selects, Ctrl+A selects all, Escape nothing. @param {KeyboardEvent} event */
  pressed(event) {
    const row = /** @type {HTMLElement} */ (event.target).closest("[data-name]");
    if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.choose(() => true);
    } else if (event.key === "Escape") {
      this.choose(() => false);
    } else if (row && this.step(event.key) && !event.altKey) {
      const next = this.next(row, this.step(event.key));
      const isBox = event.target instanceof HTMLInputElement;
      const goal = next?.querySelector(isBox ? "input[name=name]" : "a");
      if (goal instanceof HTMLElement) {
        event.preventDefault();
        goal.focus();
        if (event.shiftKey && next) {
          for (const each of [row, next]) {
            const box = each.querySelector("input[name=name]");
            if (box instanceof HTMLInputElement) box.checked = true;
          }
          this.showCount();
        }
      }
    }
  }

  /** How many rows further a key leads; 0 for other keys. @param {string} key */
  step(key) {
    const isGrid = this.isGrid();
    if (isGrid && key.startsWith("Arrow")) {
      const tiles = [...this.element.querySelectorAll("li.tile")];
      const top = /** @type {HTMLElement | undefined} */ (tiles[0])?.offsetTop;
      const below = tiles.findIndex((tile) => /** @type {HTMLElement} */ (tile).offsetTop !== top);
      const columns = below < 0 ? tiles.length : below;
      return { ArrowDown: columns, ArrowUp: -columns, ArrowRight: 1, ArrowLeft: -1 }[key] ?? 0;
    }
    return { ArrowDown: 1, ArrowUp: -1 }[key] ?? 0;
  }

  /**
   * The row so many rows further, if there is one.
   * @param {Element} row
   * @param {number} step
   * @returns {HTMLElement | undefined}
   */
  next(row, step) {
    const rows = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll("[data-name]")]);
    return rows[rows.indexOf(/** @type {HTMLElement} */ (row)) + step];
  }

  /** @param {(box: HTMLInputElement) => boolean} chosen */
  choose(chosen) {
    for (const box of this.boxes()) box.checked = chosen(box);
    this.showCount();
  }

  showCount() {
    const count = this.boxes().filter((box) => box.checked).length;
    const output = document.getElementById("selected");
    if (output) output.textContent = (output.dataset.text ?? "").replace("{number}", String(count));
    const rename = this.selection.querySelector("[data-rename]");
    if (rename) /** @type {HTMLElement} */ (rename).hidden = count !== 1;
  }

  /** Open the page for renaming the one that is selected. @param {HTMLElement} button */
  rename(button) {
    const box = this.boxes().find((each) => each.checked);
    if (box) location.assign((button.dataset.rename ?? "") + box.value);
  }

  // --- live changes --------------------------------------------------------------------------

  startLive() {
    watch(this.element.dataset.events, () => this.refreshKeepingLength());
  }

  /** Refresh, and load as many rows as there were before. */
  async refreshKeepingLength() {
    const length = this.boxes().length;
    await this.refresh();
    await this.loadUpTo(length);
  }

  /** Load rows until there are so many, or all. @param {number} length */
  async loadUpTo(length) {
    while (this.boxes().length < length && (await this.loadAnother()));
  }

  /** Load one more part of the list; whether there was one. */
  async loadAnother() {
    const before = this.boxes().length;
    await this.loadMore(new IntersectionObserver(() => undefined));
    return this.boxes().length > before;
  }

  /** Whoever comes back finds the list as long as it was, and at the same place. */
  async startPlace() {
    addEventListener("pagehide", () => {
      history.replaceState({ rows: this.boxes().length, top: scrollY }, "");
    });
    const { rows, top } = /** @type {{ rows?: number, top?: number }} */ (history.state ?? {});
    if (!rows || rows <= this.boxes().length) return;
    await this.loadUpTo(rows);
    scrollTo({ top, behavior: "instant" });
  }
}

/**
 * The page as it is now. A person who has been signed out meanwhile is led to the sign-in, so that
 * nothing stays on the screen.
 * @param {string} address
 */
async function fetchPage(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  if (response.redirected) location.reload();
  return response;
}

/**
 * The rows of a further part of the list.
 * @param {URL} url
 * @param {boolean} isGrid
 */
async function fetchRows(url, isGrid) {
  url.searchParams.set("part", "rows");
  const response = await fetch(url, { headers: { Accept: "text/html" } });
  if (!response.ok) throw new Error(response.statusText);
  const text = await response.text();
  const wrapped = isGrid ? `<ul>${text}</ul>` : `<table><tbody>${text}</tbody></table>`;
  const page = new DOMParser().parseFromString(wrapped, "text/html");
  return [...(page.querySelector(isGrid ? "ul" : "tbody")?.children ?? [])];
}

/**
 * Call back when the resource of the page may have changed; several changes at once are one. A page
 * that nobody sees does not listen, since browsers have few connections to one server for all pages.
 * @param {string | undefined} address
 * @param {() => void} changed
 */
function watch(address, changed) {
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

/** Say when the document of the page has changed; what is read or written there stays. */
function startDocument() {
  const page = document.getElementById("document");
  if (!page) return;
  watch(page.dataset.events, async () => {
    const response = await fetchPage(location.pathname);
    if (document.getElementById("changed") || !response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    if (fresh.getElementById("document")?.dataset.version === page.dataset.version) return;
    const note = document.createElement("p");
    note.id = "changed";
    note.className = "note";
    note.setAttribute("role", "status");
    note.textContent = `${page.dataset.changed ?? ""} `;
    const link = document.createElement("a");
    link.href = page.dataset.view === "edit" ? location.pathname : location.href;
    link.textContent = page.dataset.show ?? "";
    note.append(link);
    page.before(note);
  });
}

/** @param {KeyboardEvent} event */
export function isTyping(event) {
  return event.target instanceof Element && event.target.closest("input, textarea, select") !== null;
}

/** Buttons that copy a text, which is on the page, too. */
function startCopyButtons() {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    if (!(button instanceof HTMLButtonElement) || !navigator.clipboard) continue;
    button.hidden = false;
    const title = button.textContent;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy ?? "");
      button.textContent = button.dataset.done ?? "";
      setTimeout(() => (button.textContent = title), 2000);
    });
  }
}

/** The editor: the place of an error, Ctrl+S, and a warning before unsaved changes are lost. */
function startEditor() {
  const area = document.querySelector("form.editor textarea");
  if (!(area instanceof HTMLTextAreaElement)) return;
  const form = /** @type {HTMLFormElement} */ (area.form);
  const problem = document.getElementById("problem");
  if (problem?.dataset.line) {
    const lines = area.value.split("\n");
    const line = Number(problem.dataset.line);
    const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    const at = Math.min(before + Number(problem.dataset.column) - 1, area.value.length);
    area.focus();
    area.setSelectionRange(at, at + 1);
  }
  let isSaved = true;
  area.addEventListener("input", () => (isSaved = false));
  form.addEventListener("submit", async (event) => {
    // Without a connection the browser would leave the page, and the text with it.
    event.preventDefault();
    const note = form.querySelector("[data-offline]");
    const buttons = form.querySelectorAll("button");
    buttons.forEach((button) => (button.disabled = true));
    try {
      await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
    } catch {
      if (note instanceof HTMLElement) note.hidden = false;
      return;
    } finally {
      buttons.forEach((button) => (button.disabled = false));
    }
    if (note instanceof HTMLElement) note.hidden = true;
    isSaved = true;
    form.submit();
  });
  addEventListener("beforeunload", (event) => {
    if (!isSaved) event.preventDefault();
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
}

const members = document.getElementById("members");
/** The list of the page, if it is about a container. */
export const list = members && new MemberList(members);
list?.start();
startCopyButtons();
startEditor();
startDocument();
