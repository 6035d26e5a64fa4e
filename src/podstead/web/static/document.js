// The page about a document: its changes, the buttons that copy, and the editor.

import { fetchPage, watch } from "./files.js";

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

startCopyButtons();
startEditor();
startDocument();
