// Sends files: several at a time, with bars, and continued after a broken connection or a reload of
// the page. The protocol is tus 1.0.0.

const PLACE = "/.pages/uploads/";
const AT_ONCE = 3;
const PART_BYTES = 32 * 1024 * 1024;
const SMALL_BYTES = 256 * 1024; // in one request
const MAX_ATTEMPTS = 12; // without any progress
const MAX_DELAY_MS = 20_000;
const WINDOW_MS = 8_000; // over which the speed is measured
const SHOWN_ROWS = 200; // and every one that failed
const REMEMBERED_MS = 24 * 60 * 60 * 1000;
const MEMORY = "podstead-upload ";

/** @typedef {import("./uploads.js").Chosen} Chosen */
/** @typedef {"waiting" | "sending" | "pausing" | "done" | "skipped" | "failed" | "cancelled"} State */
/** @typedef {"replace" | "keep" | "skip"} Choice */

/** The person cancelled the upload. */
class Cancelled extends Error {}
/** The connection broke, or the server is busy: try again. */
class Interrupted extends Error {}
/** The server refused. */
class Refused extends Error {
  /** @param {XMLHttpRequest} answer */
  constructor({ status, responseText }) {
    super(/"message": ?("(?:[^"\\]|\\.)*")/.exec(responseText)?.[1] ?? '""');
    this.message = JSON.parse(this.message);
    this.status = status;
    this.ofPod = responseText.includes('"usedBytes"');
  }
}

/** @param {XMLHttpRequest} answer */
const offsetOf = (answer) => Number(answer.getResponseHeader("Upload-Offset"));

/** One file on its way. */
class Upload {
  /**
   * @param {Chosen} chosen
   * @param {Uploads} all
   */
  constructor(chosen, all) {
    this.file = chosen.file;
    this.path = chosen.path;
    this.all = all;
    /** @type {State} */
    this.state = "waiting";
    this.sent = 0;
    this.message = "";
    this.attempts = 0;
    /** @type {string | null} */
    this.url = null;
    /** @type {XMLHttpRequest | null} */
    this.request = null;
    /** @type {(() => void) | null} */
    this.wake = null;
    this.row = new Row(this);
  }

  get isOver() {
    return ["done", "skipped", "failed", "cancelled"].includes(this.state);
  }

  /** Where this file is remembered, so that the upload continues after a reload. */
  get memory() {
    const { name, size, lastModified } = this.file;
    return MEMORY + [this.all.container + this.path, name, size, lastModified].join(" ");
  }

  /** Send everything, however often the connection breaks. Never rejects. */
  async run() {
    this.set("sending");
    this.url ??= recall(this.memory);
    try {
      while (true) {
        try {
          await this.continue();
          break;
        } catch (error) {
          if (error instanceof Refused && error.status === 412) {
            if (!(await this.resolve())) return;
          } else if (error instanceof Interrupted) {
            await this.pause();
          } else {
            throw error;
          }
        }
      }
      forget(this.memory);
      this.sent = this.file.size;
      this.set("done");
    } catch (error) {
      if (error instanceof Cancelled) return;
      // A pod that is full is described by the answer; a disk that is full concerns everybody.
      const isDisk = error instanceof Refused && error.status === 507 && !error.ofPod;
      this.message = isDisk ? this.all.text("full") : error instanceof Error ? error.message : "";
      this.set("failed");
    }
  }

  /** Begin the upload or ask how far it is, and send the rest. */
  async continue() {
    const offset = this.url === null ? await this.create() : await this.ask(this.url);
    this.progress(offset);
    while (this.url !== null && this.sent < this.file.size) {
      const part = this.file.slice(this.sent, this.sent + PART_BYTES);
      const headers = { "Upload-Offset": String(this.sent), "Content-Type": OCTETS };
      const answer = await this.send("PATCH", this.url, headers, part);
      if (answer.status === 404) this.restart();
      if (answer.status === 409) throw new Interrupted(); // another offset: ask
      if (answer.status !== 204) throw new Refused(answer);
      this.progress(offsetOf(answer));
    }
  }

  /** @returns {Promise<number>} how much the server has */
  async create() {
    /** @type {Record<string, string>} */
    const metadata = { target: this.all.target(this.path) };
    if (this.file.type) metadata.filetype = this.file.type;
    if (this.all.choice !== "replace") metadata["if-none-match"] = "*";
    /** @type {Record<string, string>} */
    const headers = {
      "Upload-Length": String(this.file.size),
      "Upload-Metadata": Object.entries(metadata)
        .map(([key, value]) => `${key} ${btoa(value)}`)
        .join(","),
    };
    const small = this.file.size > 0 && this.file.size <= SMALL_BYTES;
    if (small) headers["Content-Type"] = OCTETS;
    const answer = await this.send("POST", PLACE, headers, small ? this.file : null);
    if (answer.status !== 201) throw new Refused(answer);
    this.url = new URL(answer.getResponseHeader("Location") ?? "", window.location.href).pathname;
    if (offsetOf(answer) < this.file.size) remember(this.memory, this.url);
    return offsetOf(answer);
  }

  /**
   * @param {string} url
   * @returns {Promise<number>} how much the server has
   */
  async ask(url) {
    const answer = await this.send("HEAD", url, {}, null);
    const length = Number(answer.getResponseHeader("Upload-Length"));
    if (answer.status === 200 && length === this.file.size) return offsetOf(answer);
    if (answer.status === 200 || answer.status === 404) this.restart();
    throw new Refused(answer);
  }

  /** The server does not know the upload any more. */
  restart() {
    this.url = null;
    forget(this.memory);
    throw new Interrupted();
  }

  /** @param {number} offset what the server has on its disk */
  progress(offset) {
    if (offset > this.sent) this.attempts = 0;
    this.sent = offset;
    this.all.changed();
  }

  /**
   * The name is taken: do what the person chooses for all.
   * @returns {Promise<boolean>} whether to go on
   */
  async resolve() {
    const choice = await this.all.ask(this);
    if (this.isOver) return false;
    this.url = null;
    forget(this.memory);
    if (choice === "keep") this.path = numbered(this.path);
    if (choice !== "skip") return true;
    this.set("skipped");
    return false;
  }

  /** Wait before the next attempt, longer each time, but not longer than until the network is back. */
  async pause() {
    this.attempts += 1;
    if (this.attempts > MAX_ATTEMPTS) throw new Error(this.all.text("broken"));
    this.set("pausing");
    const longest = Math.min(MAX_DELAY_MS, 500 * 2 ** this.attempts);
    await new Promise((resolve) => {
      this.wake = () => resolve(undefined);
      setTimeout(resolve, longest * (0.5 + Math.random() / 2));
    });
    this.wake = null;
    if (this.isOver) throw new Cancelled();
    this.set("sending");
  }

  cancel() {
    if (this.isOver) return;
    this.set("cancelled");
    forget(this.memory);
    this.request?.abort();
    this.wake?.();
    if (this.url !== null) this.send("DELETE", this.url, {}, null).catch(() => {});
    this.all.next();
  }

  retry() {
    this.attempts = 0;
    this.message = "";
    this.all.outcome = "";
    this.set("waiting");
    this.all.next();
  }

  /** @param {State} state */
  set(state) {
    this.state = state;
    const { element } = this.row;
    if (state === "failed" && !element.isConnected) this.all.list.append(element);
    this.all.changed();
  }

  /**
   * @param {string} method
   * @param {string} url
   * @param {Record<string, string>} headers
   * @param {Blob | null} body
   * @returns {Promise<XMLHttpRequest>}
   */
  send(method, url, headers, body) {
    const request = new XMLHttpRequest();
    request.open(method, url);
    request.setRequestHeader("Tus-Resumable", "1.0.0");
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("X-CSRF-Token", document.body.dataset.csrfToken ?? "");
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    const before = this.sent;
    request.upload.onprogress = ({ loaded }) => {
      this.sent = Math.min(before + loaded, this.file.size);
      this.all.changed();
    };
    if (method !== "DELETE") this.request = request;
    return new Promise((resolve, reject) => {
      request.onload = () => {
        const { status } = request;
        const isBusy = status >= 500 && status !== 507;
        if (isBusy || [408, 423, 425, 429].includes(status)) interrupt();
        else resolve(request);
      };
      const interrupt = (request.onerror = () => {
        this.sent = before; // what the server has of the rest is asked for
        reject(new Interrupted());
      });
      request.onabort = () => reject(new Cancelled());
      request.send(body);
    }).finally(() => {
      if (this.request === request) this.request = null;
    });
  }
}

const OCTETS = "application/offset+octet-stream";

/** What the list shows of one upload. */
class Row {
  /** @param {Upload} upload */
  constructor(upload) {
    this.upload = upload;
    this.element = document.createElement("li");
    this.name = document.createElement("span");
    this.name.className = "upload-name";
    this.bar = document.createElement("progress");
    this.bar.max = 1;
    this.bar.setAttribute("aria-label", upload.path);
    this.status = document.createElement("span");
    this.status.className = "upload-status";
    const { all } = upload;
    this.cancel = all.button("cancel", upload.path, () => upload.cancel());
    this.retry = all.button("retry", upload.path, () => upload.retry());
    this.element.append(this.name, this.bar, this.status, this.cancel, this.retry);
    this.cancel.hidden = this.retry.hidden = true; // until it is shown for the first time
  }

  show() {
    const { upload } = this;
    const { all, state } = upload;
    this.element.dataset.state = state;
    this.name.textContent = upload.path;
    this.bar.value = upload.file.size ? upload.sent / upload.file.size : Number(state === "done");
    this.bar.hidden = upload.isOver;
    this.cancel.hidden = upload.isOver;
    this.retry.hidden = state !== "failed";
    const size = all.size(upload.file.size);
    this.status.textContent =
      state === "sending"
        ? all.text("of", { sent: all.size(upload.sent), size })
        : state === "failed" && upload.message
          ? upload.message
          : state === "waiting" || state === "done"
            ? `${all.text(state)} · ${size}`
            : all.text(state);
  }
}

/** All uploads of a page. */
export class Uploads {
  /** @param {HTMLElement} place the element of the template */
  constructor(place) {
    this.place = place;
    this.container = place.dataset.target ?? "/";
    /** @param {string} selector @returns {any} */
    this.find = (selector) => place.querySelector(selector);
    this.list = this.find(".upload-list");
    this.panel = this.find(".upload-panel");
    this.total = this.find(".upload-total");
    this.summary = this.find(".upload-summary");
    this.end = this.find(".upload-end");
    this.news = this.find("[aria-live]");
    this.room = this.find(".upload-room");
    this.dialog = this.find("dialog");
    /** @type {Upload[]} */
    this.uploads = [];
    /** @type {Choice | null} the choice for all names that are taken */
    this.choice = null;
    /** @type {Promise<Choice> | null} */
    this.asking = null;
    /** @type {[number, number][]} what had been sent at which time */
    this.samples = [];
    this.isDrawing = false;
    /** What has become of all, when nothing is on its way any more. */
    this.outcome = "";
    this.language = document.documentElement.lang || "en";
  }

  // --- what the page does --------------------------------------------------------------------

  listen() {
    this.end.addEventListener("click", () => {
      if (this.uploads.every((upload) => upload.isOver)) this.panel.hidden = true;
      for (const upload of this.uploads) upload.cancel();
    });
    window.addEventListener("offline", () => this.changed());
    window.addEventListener("online", () => this.uploads.forEach((upload) => upload.wake?.()));
    window.addEventListener("beforeunload", (event) => {
      if (this.uploads.some((upload) => !upload.isOver)) event.preventDefault();
    });
    forgetOld();
  }

  // --- the queue -----------------------------------------------------------------------------

  /** @param {Chosen[]} chosen */
  add(chosen) {
    if (!chosen.length) return;
    this.outcome = "";
    if (this.uploads.every((upload) => upload.isOver)) {
      this.uploads = this.uploads.filter((upload) => upload.state === "failed");
      this.list.replaceChildren(...this.uploads.map((upload) => upload.row.element));
      this.choice = null;
      this.samples = [];
    }
    for (const each of chosen) {
      const upload = new Upload(each, this);
      this.uploads.push(upload);
      if (this.list.childElementCount < SHOWN_ROWS) this.list.append(upload.row.element);
    }
    const size = chosen.reduce((sum, { file }) => sum + file.size, 0);
    const left = this.place.dataset.left;
    this.room.hidden = left === undefined || size <= Number(left);
    this.room.textContent = this.room.hidden
      ? ""
      : this.text("room", { size: this.size(size), left: this.size(Number(left)) });
    this.panel.hidden = false;
    this.news.textContent = this.text("begun", { count: this.number(chosen.length) });
    this.next();
  }

  /** Begin as many as may be sent at once. */
  next() {
    const sending = this.uploads.filter((each) => ["sending", "pausing"].includes(each.state));
    for (const upload of this.uploads) {
      if (sending.length >= AT_ONCE) break;
      if (upload.state !== "waiting") continue;
      sending.push(upload);
      upload.run().then(() => this.next());
    }
    this.changed();
    if (this.uploads.length && this.uploads.every((upload) => upload.isOver)) this.finish();
  }

  finish() {
    if (this.outcome) return;
    const done = this.uploads.filter((upload) => upload.state === "done").length;
    const failed = this.uploads.filter((upload) => upload.state === "failed").length;
    const cancelled = this.uploads.filter((upload) => upload.state === "cancelled").length;
    const numbers = {
      done: this.number(done),
      failed: this.number(failed),
      cancelled: this.number(cancelled),
    };
    const what = cancelled ? "some-cancelled" : failed ? "some-failed" : "finished";
    this.outcome = this.text(what, numbers);
    this.news.textContent = this.outcome;
    if (!done) return;
    // The page of the container shows what is new by itself; others lead there.
    const event = new CustomEvent("uploads-finished", { cancelable: true, detail: { failed } });
    const { afterwards } = this.place.dataset;
    if (!document.dispatchEvent(event) || failed || !afterwards) return;
    if (window.location.pathname !== afterwards) window.location.assign(afterwards);
  }

  /**
   * What to do with names that are taken. The person is asked once for all of them.
   * @param {Upload} upload
   * @returns {Promise<Choice>}
   */
  ask(upload) {
    if (this.choice !== null) return Promise.resolve(this.choice);
    this.asking ??= new Promise((resolve) => {
      const { dialog } = this;
      this.find(".upload-dialog-text").textContent = this.text("taken", { name: upload.path });
      dialog.returnValue = "";
      dialog.addEventListener(
        "close",
        () => {
          this.asking = null;
          const { returnValue } = dialog; // empty if the person pressed Escape
          const choice = returnValue === "replace" || returnValue === "keep" ? returnValue : "skip";
          this.choice = choice;
          resolve(choice);
        },
        { once: true },
      );
      dialog.showModal();
    });
    return this.asking;
  }

  /**
   * The path of a file as the server has it.
   * @param {string} path
   */
  target(path) {
    return this.container + path.split("/").map(encodeURIComponent).join("/");
  }

  // --- what is shown -------------------------------------------------------------------------

  /** Draw soon, at most once for each frame. */
  changed() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    setTimeout(() => {
      this.isDrawing = false;
      this.draw();
    }, 100);
  }

  draw() {
    const counted = this.uploads.filter(({ state }) => state !== "cancelled" && state !== "skipped");
    const size = counted.reduce((sum, { file }) => sum + file.size, 0);
    const sent = counted.reduce((sum, upload) => sum + upload.sent, 0);
    const done = counted.filter(({ state }) => state === "done").length;
    for (const { row } of this.uploads) if (row.element.isConnected) row.show();
    this.total.value = size ? sent / size : 0;
    const parts = [
      this.text("files", { done: this.number(done), count: this.number(counted.length) }),
      this.text("of", { sent: this.size(sent), size: this.size(size) }),
    ];
    const isOver = this.uploads.every((upload) => upload.isOver);
    const isSending = this.uploads.some(({ state }) => state === "sending");
    if (!isSending || !navigator.onLine) this.samples = [];
    const speed = this.speed(sent);
    if (!isOver && !navigator.onLine) {
      parts.push(this.text("offline"));
    } else if (isSending && speed > 0) {
      parts.push(this.text("speed", { size: this.size(speed) }));
      parts.push(this.text("left", { time: this.time((size - sent) / speed) }));
    }
    // Nothing is on its way any more: what has become of it, and not how much has been sent.
    this.summary.textContent = isOver && this.outcome ? this.outcome : parts.join(" · ");
    this.total.hidden = isOver;
    this.end.textContent = this.text(isOver ? "close" : "cancel-all");
  }

  /**
   * Bytes per second over the last seconds.
   * @param {number} sent
   */
  speed(sent) {
    const now = performance.now();
    this.samples.push([now, sent]);
    while (this.samples.length > 2 && this.samples[0][0] < now - WINDOW_MS) this.samples.shift();
    const [before, had] = this.samples[0];
    return now > before ? Math.max(0, ((sent - had) * 1000) / (now - before)) : 0;
  }

  /**
   * A text of the template in the language of the page.
   * @param {string} name
   * @param {Record<string, string>} values
   */
  text(name, values = {}) {
    const text = this.place.getAttribute(`data-text-${name}`) ?? name;
    return text.replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
  }

  /**
   * @param {number} value
   * @param {any} options
   */
  number(value, options = {}) {
    return new Intl.NumberFormat(this.language, options).format(value);
  }

  /** @param {number} bytes */
  size(bytes) {
    const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
    let [value, unit] = [bytes, 0];
    while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
    const digits = { maximumFractionDigits: unit ? 1 : 0 };
    // As the pages of the server write it.
    if (!unit) return `${this.number(value)} B`;
    return this.number(value, { style: "unit", unit: units[unit], ...digits });
  }

  /** @param {number} seconds */
  time(seconds) {
    let [value, unit] = [seconds, "second"];
    if (value >= 60) [value, unit] = [value / 60, "minute"];
    if (value >= 60) [value, unit] = [value / 60, "hour"];
    return this.number(Math.ceil(value), { style: "unit", unit, unitDisplay: "long" });
  }

  /**
   * @param {string} name
   * @param {string} path
   * @param {() => void} act
   */
  button(name, path, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain small";
    button.textContent = this.text(name);
    button.setAttribute("aria-label", `${this.text(name)}: ${path}`);
    button.addEventListener("click", act);
    return button;
  }
}

/**
 * The next name to try: "a.txt", "a (2).txt", "a (3).txt".
 * @param {string} path
 */
function numbered(path) {
  const [, above, name, end] = /** @type {string[]} */ (/^(.*\/)?(.+?)(\.[^./]*)?$/s.exec(path));
  const counted = /^(.*) \((\d+)\)$/s.exec(name);
  const next = counted ? `${counted[1]} (${Number(counted[2]) + 1})` : `${name} (2)`;
  return (above ?? "") + next + (end ?? "");
}

// --- what is remembered when the page is reloaded -----------------------------------------------

/**
 * @param {string} key
 * @returns {string | null}
 */
function recall(key) {
  return parsed(localStorage.getItem(key)).url ?? null;
}

/**
 * @param {string} key
 * @param {string} url
 */
function remember(key, url) {
  try {
    localStorage.setItem(key, JSON.stringify({ url, at: Date.now() }));
  } catch {
    // It is full: the upload works all the same, but cannot be continued after a reload.
  }
}

/** @param {string} key */
function forget(key) {
  localStorage.removeItem(key);
}

function forgetOld() {
  for (const key of Object.keys(localStorage).filter((each) => each.startsWith(MEMORY))) {
    if (!(parsed(localStorage.getItem(key)).at > Date.now() - REMEMBERED_MS)) forget(key);
  }
}

/** @param {string | null} text */
function parsed(text) {
  try {
    return JSON.parse(text ?? "{}");
  } catch {
    return {};
  }
}
