// What every page does when scripts run: times in the reader's own time zone, and menus that close.

/** Show each time in the reader's own time zone; the page has it in UTC. */
export function showLocalTimes() {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, {
    dateStyle: "medium",
    timeStyle: "short",
  });
  for (const element of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(/** @type {HTMLTimeElement} */ (element).dateTime);
    if (!Number.isNaN(moment.getTime())) {
      element.textContent = format.format(moment);
    }
  }
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

showLocalTimes();
scrollToCurrent();
submitLanguageAtOnce();
document.addEventListener("click", closeMenus);
document.addEventListener("keydown", closeMenus);
