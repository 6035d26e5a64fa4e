// What every page does when scripts run: times in the reader's own time zone, and menus that close.

/**
 * Show each time in the reader's own time zone, where the page has it in UTC; those with
 * data-relative by how long ago they are. The other of the two is the title.
 * @param {ParentNode[]} parts where they are
 */
export function showLocalTimes(parts = [document]) {
  const language = document.documentElement.lang;
  const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  for (const element of parts.flatMap((part) => [...part.querySelectorAll("time[datetime]")])) {
    if (!(element instanceof HTMLTimeElement)) continue;
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const text = format.format(moment);
    const ago = timeAgo(moment, new Date(), language);
    const isRelative = "relative" in element.dataset && ago !== null;
    element.textContent = isRelative ? ago : text;
    if (ago !== null) element.title = isRelative ? text : ago;
  }
}

/**
 * A time of the last seven days as people say it, such as “5 minutes ago” or “yesterday, 14:03”.
 * @param {Date} moment
 * @param {Date} now
 * @param {string} language
 */
function timeAgo(moment, now, language) {
  const minutes = Math.floor((now.getTime() - moment.getTime()) / 60_000);
  const midnight = (/** @type {Date} */ at) => new Date(at).setHours(0, 0, 0, 0);
  const days = Math.round((midnight(now) - midnight(moment)) / 86_400_000);
  if (minutes < 0 || days > 6) return null;
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  if (minutes < 1) return relative.format(0, "second");
  if (minutes < 60) return relative.format(-minutes, "minute");
  if (days === 0) return relative.format(-Math.floor(minutes / 60), "hour");
  const time = new Intl.DateTimeFormat(language, { timeStyle: "short" }).format(moment);
  return `${relative.format(-days, "day")}, ${time}`;
}

/**
 * Close open menus when the person clicks elsewhere or presses Escape.
 * @param {Event} event
 */
function closeMenus(event) {
  const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
  if (event instanceof KeyboardEvent && !isEscape) return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (isEscape || !menu.contains(/** @type {Node} */ (event.target))) {
      menu.removeAttribute("open");
      if (isEscape) menu.querySelector("summary")?.focus();
    }
  }
}

/** The choice of a language needs no button where scripts run. */
function submitLanguageAtOnce() {
  const form = document.querySelector("form[data-language]");
  if (!(form instanceof HTMLFormElement)) return;
  form.querySelector("select")?.addEventListener("change", () => form.requestSubmit());
  form.querySelector("button")?.setAttribute("hidden", "");
}

/** Rows of links that are wider than a phone begin with the link to the page that is shown. */
function scrollToCurrent() {
  for (const element of document.querySelectorAll(".nav [aria-current], .tabs [aria-current]")) {
    const row = element.parentElement;
    if (row && row.scrollWidth > row.clientWidth) {
      element.scrollIntoView({ block: "nearest", inline: "center", behavior: "instant" });
    }
  }
}

/**
 * Load a style sheet, unless the page has it.
 * @param {string} name
 * @returns {Promise<void>} when it applies
 */
export async function addStyles(name) {
  if (document.querySelector(`link[href$="/${name}"]`)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL(name, import.meta.url).href;
  await new Promise((done) => {
    link.onload = link.onerror = done;
    document.head.append(link);
  });
}

showLocalTimes();
scrollToCurrent();
submitLanguageAtOnce();
document.addEventListener("click", closeMenus);
document.addEventListener("keydown", closeMenus);
