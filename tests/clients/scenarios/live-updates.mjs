// What applications do that watch documents over solid-0.1: rdflib.js with its live updates, and a
// program with `ws`.

import { Fetcher, UpdateManager, graph, literal, st, sym } from "rdflib";
import WebSocketOfWs from "ws";

/** Everything that came on sockets, and a wait for it. */
class Heard {
  lines = [];
  #waiting = [];

  add(line) {
    this.lines.push(line);
    this.#waiting = this.#waiting.filter(({ enough, resolve }) => !enough(this.lines) || resolve());
  }

  until(enough) {
    return enough(this.lines)
      ? Promise.resolve()
      : new Promise((resolve) => this.#waiting.push({ enough, resolve }));
  }

  count(line) {
    return this.lines.filter((each) => each === line).length;
  }
}

// --- rdflib.js --------------------------------------------------------------------------------

/** An application that has a document open, and keeps it up to date. */
async function opened(url, fetch) {
  const heard = new Heard();
  const sockets = [];
  const Native = WebSocketOfWs;
  globalThis.WebSocket = class extends Native {
    constructor(...given) {
      super(...given);
      sockets.push(this);
      this.addEventListener("message", ({ data }) => heard.add(data));
    }
  };
  const store = graph();
  const fetcher = new Fetcher(store, { fetch });
  const updater = new UpdateManager(store);
  const document = sym(url);
  await fetcher.load(document);
  const reloads = new Heard();
  updater.addDownstreamChangeListener(document, () => reloads.add("reload"));
  await heard.until((lines) => lines.includes(`ack ${url}`));
  const note = (text) => st(sym(`${url}#it`), sym(`${url}#note`), literal(text), document);
  const notes = () => store.each(sym(`${url}#it`), sym(`${url}#note`)).map((each) => each.value);
  const close = () => sockets.forEach((socket) => (socket.onclose = null) ?? socket.terminate());
  return { updater, heard, reloads, note, notes, close };
}

/** Changes a document `count` times, and once without effect: is any of it taken for a change of
 * somebody else's? */
export async function changesOfItsOwn({ url, count, fetch }) {
  const page = await opened(url, fetch);
  for (let number = 0; number < count; number++) await page.updater.update([], [page.note(`${number}`)]);
  await page.updater.update([], [page.note("0")]);
  await page.heard.until(() => page.heard.count(`pub ${url}`) === count + 1);
  page.close();
  return { notes: page.notes().sort(), reloads: page.reloads.lines.length, heard: page.heard.lines };
}

/** Changes a document, and so does somebody else with a request of their own. */
export async function changesOfOthers({ url, fetch }) {
  const page = await opened(url, fetch);
  await page.updater.update([], [page.note("mine")]);
  await page.heard.until(() => page.heard.count(`pub ${url}`) === 1);
  const before = page.reloads.lines.length;
  await fetch(url, {
    method: "PATCH",
    headers: { "Content-Type": "application/sparql-update" },
    body: `INSERT DATA { <#it> <#note> "theirs" }`,
  });
  await page.reloads.until((lines) => lines.length > 0);
  page.close();
  return { before, notes: page.notes().sort() };
}

// --- ws ---------------------------------------------------------------------------------------

/** Subscribes as a program does that can say who it is, and writes; what it hears, in order. */
export async function watches({ url, container, token, fetch }) {
  const address = (await fetch(container, { method: "HEAD" })).headers.get("updates-via");
  const heard = new Heard();
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const socket = new WebSocketOfWs(address, ["solid-0.1"], { headers });
  socket.on("message", (data) => heard.add(data.toString()));
  await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  const pong = new Promise((resolve) => socket.on("pong", (data) => resolve(data.toString())));
  socket.ping("alive?");
  for (const each of [url, container]) socket.send(`sub ${each}`);
  await heard.until((lines) => lines.length === 3);
  if (token) {
    const send = (method, body) =>
      fetch(url, { method, body, headers: { "Content-Type": "text/turtle" } });
    for (const [method, body] of [["PUT", "<> a <#a>."], ["PUT", "<> a <#b>."], ["DELETE"]])
      await send(method, body);
    await heard.until((lines) => lines.length === 3 + 2 * 3);
  }
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.close(1000);
  return { protocol: socket.protocol, heard: heard.lines, pong: await pong, closed: await closed };
}

/** Says who it is in lines, as a page has to, and writes without waiting for any answer. */
export async function writesAtOnce({ url, token, fetch }) {
  const address = (await fetch(url, { method: "HEAD" })).headers.get("updates-via");
  const heard = new Heard();
  const socket = new WebSocketOfWs(address, ["solid-0.1"]);
  socket.on("message", (data) => heard.add(data.toString()));
  await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  socket.send(`auth Bearer ${token}`);
  socket.send(`sub ${url}`);
  await fetch(url, { method: "PUT", body: "<> a <#y>.", headers: { "Content-Type": "text/turtle" } });
  await heard.until((lines) => lines.length === 3);
  socket.terminate();
  return heard.lines;
}
