// Long lists: their pages are loaded when they come near the window. A page has several parts, and a
// frame changes one, so that it stays short; what is far is taken out.

import { showLocalTimes } from "./pods.js";

const NEAR = 1200;
const FAR = 3000;
const KEPT = 120; // parts that are loaded and not in the list

/** @typedef {import("./files.js").MemberList} MemberList */
/**
 * @typedef {object} Size
 * @property {number} height
 * @property {number} start in which column of a grid it starts
 * @property {number} end how many tiles are in the last row of a grid, if that is not full
 */
/**
 * @typedef {object} Part
 * @property {number} index
 * @property {Element[]} nodes what is in the list: what the server sent, or blanks of the same size
 * @property {Element[] | null} loaded what the server sent
 * @property {HTMLElement[]} rows
 * @property {Size | null} size as it was when it was in the list
 */

export class Parts {
  /**
   * @param {MemberList} list
   * @param {HTMLAnchorElement} more the link to the second part
   * @param {number[]} [heights] of the parts, as far as they are known
   * @param {Map<number, Element[]>} [loaded] what the server sent for parts that are shown at once
   */
  constructor(list, more, heights, loaded) {
    this.list = list;
    this.link = more;
    this.isGrid = list.isGrid();
    this.columns = list.columns();
    const rows = /** @type {HTMLElement} */ (list.element.querySelector("[data-rows]"));
    /** The table, or the list of tiles. */
    this.place = this.isGrid ? rows : /** @type {HTMLElement} */ (rows.parentElement);
    this.partRows = Number(rows.dataset.part);
    const pageRows = Number(rows.dataset.rows);
    this.pageParts = pageRows / this.partRows;
    this.start = Number(new URL(more.href).searchParams.get("from")) - pageRows;
    /** How many rows there are. */
    this.count = Number(rows.dataset.total) - this.start;
    this.isLoading = false;
    this.isPlanned = false;
    more.closest(".more")?.remove();
    /** @type {Part[]} */
    this.all = this.split(this.place).map((nodes, index) => ({ index, nodes, loaded: null, rows: [], size: null }));
    for (const part of this.all) this.take(part, part.nodes);
    this.gap = 0;
    this.tile = 0;
    /** How high a row is with the space above it. */
    this.pitch = 0;
    this.learn(/** @type {Part} */ (this.all[0]));
    if (!this.isGrid) this.place.setAttribute("aria-rowcount", String(this.count + this.start + 1));
    for (let index = this.all.length; index * this.partRows < this.count; index++) {
      /** @type {Part} */
      const part = { index, nodes: [], loaded: null, rows: [], size: this.estimate(index, heights?.[index]) };
      const sent = loaded?.get(index);
      if (sent) this.take(part, sent);
      part.nodes = sent ?? this.blanks(part);
      this.place.append(...part.nodes);
      this.all.push(part);
    }
  }

  /** The rows that are loaded, in the list or not. */
  rows() {
    return this.all.flatMap((part) => part.rows);
  }

  heights() {
    for (const part of this.all) if (isShown(part)) this.measure(part);
    return this.all.map((part) => part.size?.height ?? 0);
  }

  /** @param {HTMLElement} row */
  indexOf(row) {
    const part = this.all.find((each) => each.rows.includes(row));
    return part ? part.index * this.partRows + part.rows.indexOf(row) : -1;
  }

  /** The row at an index, in the list. @param {number} index */
  async at(index) {
    const part = this.all[Math.floor(index / this.partRows)];
    if (!part || !(await this.load(part))) return undefined;
    this.show(part);
    return part.rows[index % this.partRows];
  }

  /** Load so many rows. @param {number} count */
  async loadFirst(count) {
    for (const part of this.all.slice(0, Math.ceil(count / this.partRows))) await this.load(part);
  }

  /** What the server has now of the parts that are shown. @param {string} address the second part's */
  async loadShown(address) {
    const shown = this.all.filter((part) => part.index >= this.pageParts && isShown(part) && distance(part) < NEAR);
    const firsts = [...new Set(shown.map((part) => this.firstOfPage(part)))];
    const found = await Promise.all(firsts.map((first) => this.fetched(first, address).catch(() => [])));
    return new Map(found.flatMap((page, at) => page.map((nodes, index) => [(firsts[at] ?? 0) + index, nodes])));
  }

  // --- what is near ----------------------------------------------------------------------------

  /** @param {boolean} [isResized] */
  plan(isResized = false) {
    if (isResized) this.resize();
    if (this.isPlanned) return;
    this.isPlanned = true;
    requestAnimationFrame(() => {
      this.isPlanned = false;
      void this.arrange();
    });
  }

  /** Load or show what is nearest to the window, or take out what is far: one part in a frame, which stays short. */
  async arrange() {
    if (!this.place.isConnected) return;
    const places = this.all.map((part) => ({ part, away: distance(part) })).sort((a, b) => a.away - b.away);
    const next = places.find(({ part, away }) => !isShown(part) && away < NEAR)?.part;
    const far = [...places].reverse().find(({ part, away }) => isShown(part) && away > FAR && !isInUse(part))?.part;
    if (next && !next.loaded) {
      if (this.isLoading || !(await this.load(next))) return; // its link is for another try
    } else if (next) this.show(next);
    else if (far) this.hide(far);
    else {
      const kept = places.filter(({ part }) => part.loaded && !isShown(part) && !part.rows.some(isSelected));
      for (const { part } of kept.slice(KEPT)) Object.assign(part, { loaded: null, rows: [] });
      return;
    }
    this.plan();
  }

  /** The index of the first part of a part's page. @param {Part} part */
  firstOfPage(part) {
    return part.index - (part.index % this.pageParts);
  }

  /** Get the page of a part; whether its rows are there. @param {Part} part */
  async load(part) {
    if (part.loaded) return true;
    this.isLoading = true;
    try {
      const first = this.firstOfPage(part);
      for (const [at, nodes] of (await this.fetched(first, this.link.href)).entries()) {
        const each = this.all[first + at];
        if (each && !each.loaded) this.take(each, nodes);
      }
    } catch {
      part.nodes[0]?.querySelector("td, p")?.append(this.link);
    } finally {
      this.isLoading = false;
    }
    return part.loaded !== null;
  }

  /**
   * The parts of a page, as the server has them now.
   * @param {number} index of the first part
   * @param {string} address
   */
  async fetched(index, address) {
    const url = new URL(address);
    url.searchParams.set("from", String(this.start + index * this.partRows));
    url.searchParams.set("part", "rows");
    const response = await fetch(url, { headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) throw new Error(response.statusText);
    const text = await response.text();
    const wrapped = this.isGrid ? `<ul>${text}</ul>` : `<table><tbody>${text}</tbody></table>`;
    const found = new DOMParser().parseFromString(wrapped, "text/html").querySelector("ul, table");
    found?.querySelector(".more")?.remove();
    if (!found?.querySelector("[data-name]")) throw new Error("no rows");
    return this.split(found);
  }

  /** The nodes of each part of a page. @param {Element} place */
  split(place) {
    if (!this.isGrid) return [...place.querySelectorAll("tbody")].map((body) => [body]);
    /** @type {Element[][]} */
    const parts = [];
    let rows = 0;
    for (const node of place.children) {
      // The name of a month is with the photos below it.
      if (rows % this.partRows === 0 && !node.matches(".apps") && parts.length * this.partRows <= rows) parts.push([]);
      parts.at(-1)?.push(node);
      if (node.matches("[data-name]")) rows++;
    }
    return parts;
  }

  /**
   * Keep what the server sent for a part.
   * @param {Part} part
   * @param {Element[]} nodes
   */
  take(part, nodes) {
    part.loaded = nodes;
    part.rows = nodes.flatMap((node) => /** @type {HTMLElement[]} */ ([...(node.matches("[data-name]") ? [node] : node.querySelectorAll("[data-name]"))]));
    for (const [at, row] of part.rows.entries()) {
      const number = this.start + part.index * this.partRows + at + 1;
      if (this.isGrid) row.setAttribute("aria-setsize", String(this.count + this.start));
      row.setAttribute(this.isGrid ? "aria-posinset" : "aria-rowindex", String(this.isGrid ? number : number + 1));
    }
    if (!nodes[0]?.isConnected) showLocalTimes(nodes);
    this.list.chooseAgain(part.rows);
  }

  /** @param {Part} part */
  show(part) {
    if (part.loaded && !isShown(part)) this.replace(part, part.loaded);
  }

  /** @param {Part} part */
  hide(part) {
    this.measure(part);
    this.replace(part, this.blanks(part));
  }

  /**
   * @param {Part} part
   * @param {Element[]} nodes
   */
  replace(part, nodes) {
    part.nodes[0]?.before(...nodes);
    for (const node of part.nodes) node.remove();
    part.nodes = nodes;
  }

  // --- sizes -----------------------------------------------------------------------------------

  /** Keep the widths of columns, and learn how high rows are, from a part that is shown. @param {Part} part */
  learn(part) {
    this.columns = this.list.columns();
    const heads = [...this.place.querySelectorAll("th")];
    this.place.style.tableLayout = "";
    for (const each of heads) each.style.width = "";
    const widths = heads.map((each) => each.offsetWidth);
    for (const [at, each] of heads.entries()) each.style.width = `${(100 * (widths[at] ?? 0)) / this.place.offsetWidth}%`;
    if (!this.isGrid) this.place.style.tableLayout = "fixed";
    this.measure(part);
    this.gap = this.isGrid ? parseFloat(getComputedStyle(this.place).rowGap) : 0;
    this.tile = part.rows[0]?.offsetHeight ?? 0;
    this.pitch = ((part.size?.height ?? 0) + this.gap) / Math.ceil(part.rows.length / this.columns);
  }

  /** The window has another size: what was measured does not hold any longer. */
  resize() {
    const shown = this.all.find((part) => isShown(part));
    if (shown) this.learn(shown);
    for (const part of this.all) {
      if (isShown(part)) continue;
      part.size = this.estimate(part.index);
      this.replace(part, this.blanks(part));
    }
  }

  /**
   * @param {number} index
   * @param {number} [height] if it is known
   * @returns {Size}
   */
  estimate(index, height) {
    const count = Math.min(this.partRows, this.count - index * this.partRows);
    const start = (index * this.partRows) % this.columns;
    const rows = Math.ceil((start + count) / this.columns);
    return { height: height || this.pitch * rows - this.gap, start, end: (start + count) % this.columns };
  }

  /** @param {Part} part */
  measure(part) {
    const { first, last } = edges(part);
    const { left, width } = this.place.getBoundingClientRect();
    const column = (/** @type {DOMRect} */ at) => Math.round(((at.left - left) / width) * this.columns);
    const end = last.width > width / 2 && this.columns > 1 ? 0 : column(last) + 1;
    part.size = { height: last.bottom - first.top, start: column(first), end: end % this.columns };
  }

  /** What stands for a part that is not in the list, and is as high. @param {Part} part */
  blanks(part) {
    const { height, start, end } = /** @type {Size} */ (part.size);
    if (!this.isGrid) {
      const body = document.createElement("tbody");
      const cell = body.insertRow().insertCell();
      cell.colSpan = 7;
      cell.style.height = `${height}px`;
      body.className = "blank";
      return [body];
    }
    // The rest of the row in which it starts, full rows, and the beginning of the one where it ends.
    const row = this.tile + this.gap;
    const full = height - (start ? row : 0) - (end ? row : 0);
    return [
      blank(`span ${this.columns - start}`, start ? this.tile : 0),
      blank("1 / -1", full),
      blank(`span ${end}`, end ? this.tile : 0),
    ].flat();
  }
}

/**
 * A blank of a grid, if it has a height.
 * @param {string} columns
 * @param {number} height
 */
function blank(columns, height) {
  if (height <= 0) return [];
  const made = document.createElement("li");
  made.className = "blank";
  made.setAttribute("role", "none");
  made.style.gridColumn = columns;
  made.style.height = `${height}px`;
  made.append(document.createElement("p"));
  return [made];
}

/** Where the first and the last node of a part are. @param {Part} part */
function edges({ nodes }) {
  const [node, end] = /** @type {[Element, Element]} */ ([nodes[0], nodes[nodes.length - 1]]);
  const first = node.getBoundingClientRect();
  return { first, last: node === end ? first : end.getBoundingClientRect() };
}

/** How far a part is from the window, in pixels. @param {Part} part */
function distance(part) {
  const { first, last } = edges(part);
  return Math.max(first.top - innerHeight, -last.bottom, 0);
}

/** @param {Part} part */
const isShown = (part) => part.nodes === part.loaded;

/** @param {HTMLElement} row */
const isSelected = (row) => row.querySelector("input:checked") !== null;

/** Whether the focus is there. @param {Part} part */
const isInUse = (part) => part.nodes.some((node) => node.contains(document.activeElement));
