// Files and folders that are chosen, dropped or pasted. What sends them is loaded when somebody is about to.

/** @typedef {{file: File, path: string}} Chosen A file, and its path relative to the container. */

/** @type {Promise<import("./upload-queue.js").Uploads> | null} */
let queue = null;
let tries = 0;

/** @param {HTMLElement} place the element of the template */
function load(place) {
  if (queue) return queue;
  // Browsers remember that a module could not be loaded, by its address.
  const address = `./upload-queue.js${tries++ ? `?${tries}` : ""}`;
  const styles = document.createElement("link");
  styles.rel = "stylesheet";
  styles.href = place.dataset.styles ?? "";
  // Without its styles, the panel would stand in the page for a moment and move the list.
  const styled = new Promise((done) => (styles.onload = styles.onerror = done));
  document.head.append(styles);
  const loaded = /** @type {Promise<typeof import("./upload-queue.js")>} */ (import(address));
  queue = Promise.all([loaded, styled]).then(([{ Uploads }]) => {
    const uploads = new Uploads(place);
    uploads.listen();
    return uploads;
  });
  queue.catch(() => (queue = null)); // without a connection: another try
  return queue;
}

/**
 * @param {HTMLElement} place
 * @param {Chosen[]} chosen
 */
async function add(place, chosen) {
  if (!chosen.length) return;
  try {
    (await load(place)).add(chosen);
  } catch {
    /** @type {HTMLElement} */ (place.querySelector(".upload-panel")).hidden = false;
    const summary = /** @type {HTMLElement} */ (place.querySelector(".upload-summary"));
    summary.textContent = (navigator.onLine ? place.dataset.textBroken : place.dataset.textOffline) ?? "";
    addEventListener("online", () => void add(place, chosen), { once: true });
  }
}

/** @param {HTMLElement} place */
function listen(place) {
  const buttons = /** @type {HTMLElement} */ (place.querySelector(".upload-buttons"));
  /** @param {Element | null} input */
  const choose = (input) => {
    /** @type {HTMLInputElement} */ (input).click();
    void load(place);
  };
  for (const button of buttons.querySelectorAll("button")) {
    button.addEventListener("click", () => choose(button.nextElementSibling));
  }
  // On a phone, these are in the menu of what is new.
  for (const link of document.querySelectorAll("a[data-upload]")) {
    const isPhoto = link.getAttribute("data-upload") === "photo";
    link.closest("li")?.removeAttribute("hidden");
    link.addEventListener("click", (event) => {
      event.preventDefault();
      link.closest("details")?.removeAttribute("open");
      choose(buttons.querySelector(isPhoto ? "[capture]" : "[multiple]"));
    });
  }
  for (const input of buttons.querySelectorAll("input")) {
    input.addEventListener("change", () => {
      const files = [...(input.files ?? [])];
      void add(place, files.map((file) => ({ file, path: file.webkitRelativePath || file.name })));
      input.value = "";
    });
  }
  /** @type {HTMLElement} */ (place.querySelector("form")).hidden = true;
  buttons.hidden = false;
  listenForDrops(place);
  document.addEventListener("paste", (event) => paste(place, event));
}

/** @param {HTMLElement} place */
function listenForDrops(place) {
  let inside = 0; // elements within elements
  /** @param {DragEvent} event */
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  document.addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    inside += 1;
    place.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!hasFiles(event)) return;
    inside -= 1;
    if (inside <= 0) place.classList.remove("dropping");
  });
  document.addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  document.addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    inside = 0;
    place.classList.remove("dropping");
    void add(place, await dropped(/** @type {DataTransfer} */ (event.dataTransfer)));
  });
}

/**
 * @param {HTMLElement} place
 * @param {ClipboardEvent} event
 */
function paste(place, event) {
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length || isEditable(event.target)) return;
  event.preventDefault();
  const moment = new Date().toISOString().slice(0, 19).replaceAll(":", ".").replace("T", " ");
  void add(
    place,
    files.map((file) => ({
      file,
      // Every picture in a clipboard has the same name.
      path: file.name.startsWith("image.") ? `${moment}${file.name.slice(5)}` : file.name,
    })),
  );
}

/**
 * All files that were dropped, those in folders with their paths.
 * @param {DataTransfer} data
 * @returns {Promise<Chosen[]>}
 */
async function dropped(data) {
  // The items are gone after the first await.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.() ?? null);
  const files = [...data.files].map((file) => ({ file, path: file.name }));
  if (entries.every((entry) => entry === null)) return files;
  const found = await Promise.all(entries.map((entry) => (entry ? filesIn(entry, "") : [])));
  return found.flat();
}

/**
 * @param {FileSystemEntry} entry
 * @param {string} above
 * @returns {Promise<Chosen[]>}
 */
async function filesIn(entry, above) {
  const path = above + entry.name;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => {
      /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject);
    });
    return [{ file, path }];
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  const found = [];
  while (true) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    for (const each of some) found.push(...(await filesIn(each, `${path}/`)));
  }
}

/** @param {EventTarget | null} target */
function isEditable(target) {
  return target instanceof HTMLElement && target.matches("input, textarea, [contenteditable]");
}

const place = document.querySelector("[data-uploads]");
if (place instanceof HTMLElement) listen(place);

export {};
