// What applications do to hear of changes: they subscribe with @solid-notifications/subscription or
// @inrupt/solid-client-notifications, and listen with ws, with fetch, or as a server of their own.

import { once } from "node:events";
import { createServer } from "node:http";
import { WebsocketNotification } from "@inrupt/solid-client-notifications";
import { SubscriptionClient } from "@solid-notifications/subscription";
import { createSolidTokenVerifier } from "@solid/access-token-verifier";
import WebSocket from "ws";

const NOTIFY = "http://www.w3.org/ns/solid/notifications#";
const TURTLE = { "Content-Type": "text/turtle" };

const put = (fetch, url, body = "") => fetch(url, { method: "PUT", headers: TURTLE, body });
const told = ({ type, object, target }) => ({ type, object, target: target ?? null });

/** Change and delete a resource, and make it again. */
async function change(fetch, url) {
  await put(fetch, url, "<> a <#Changed>.");
  await fetch(url, { method: "DELETE" });
  await put(fetch, url);
}

export async function hearsOverAWebSocket({ topic, changed, count, fetch }) {
  const client = new SubscriptionClient(fetch);
  const channel = await client.subscribe(topic, NOTIFY + "WebSocketChannel2023");
  const socket = new WebSocket(channel.receiveFrom);
  const messages = [];
  const all = new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("message", (data) => {
      messages.push(told(JSON.parse(data)));
      if (messages.length === count) resolve();
    });
  });
  await once(socket, "open");
  await change(fetch, changed);
  await all;
  socket.close();
  await once(socket, "close");
  const closed = await fetch(channel.id, { method: "DELETE" });
  return { channel, messages, closed: closed.status };
}

/** What a client learns that asks for a channel type that no server has. */
export async function findsNoService({ topic, fetch }) {
  await new SubscriptionClient(fetch).subscribe(topic, NOTIFY + "CarrierPigeonChannel2023");
}

export async function hearsOverTheOlderProtocol({ topic, changed, count, fetch }) {
  const notification = new WebsocketNotification(topic, { fetch });
  const messages = [];
  const all = new Promise((resolve, reject) => {
    notification.on("error", ({ message }) => reject(new Error(message)));
    notification.on("message", (message) => {
      messages.push(told(message));
      if (messages.length === count) resolve();
    });
  });
  const connected = new Promise((resolve) => notification.on("connected", resolve));
  await notification.connect();
  await connected;
  await change(fetch, changed);
  await all;
  const closed = new Promise((resolve) => notification.on("closed", resolve));
  notification.websocket.close();
  await closed;
  return { messages };
}

/** Each chunk of the response is one message, as the draft's example takes it. */
export async function hearsOverAStream({ topic, changed, count, fetch }) {
  const client = new SubscriptionClient(fetch);
  const channel = await client.subscribe(topic, NOTIFY + "StreamingHTTPChannel2023");
  const leaving = new AbortController();
  const response = await fetch(channel.receiveFrom, { signal: leaving.signal });
  const messages = [];
  const changing = change(fetch, changed);
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    // Chunks that come at once may be handed over together.
    for (const line of text.trim().split("\n")) messages.push(told(JSON.parse(line)));
    if (messages.length >= count) break;
  }
  await changing;
  leaving.abort();
  return { messages };
}

/** A server that hears of changes, and lets a verifier of Solid tokens say who tells them. */
export async function hearsAsAServer({ topic, changed, count, fetch }) {
  const verify = createSolidTokenVerifier();
  const heard = [];
  let finish;
  const all = new Promise((resolve) => {
    finish = resolve;
  });
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { authorization, dpop } = request.headers;
    const proof = { header: dpop, method: "POST", url };
    const sender = await verify(authorization, proof).catch((error) => ({ error: String(error) }));
    heard.push({ ...told(JSON.parse(Buffer.concat(chunks))), sender });
    response.end();
    if (heard.length === count) finish();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://localhost:${server.address().port}/hook`;
  const client = new SubscriptionClient(fetch);
  const channel = await client.subscribe(topic, NOTIFY + "WebhookChannel2023", url);
  await change(fetch, changed);
  await all;
  server.close();
  return { channel, heard };
}
