// nostr-tools: an HTTP client that signs its requests with a Nostr key (NIP-98).

import { getToken } from "nostr-tools/nip98";
import { finalizeEvent, generateSecretKey, getPublicKey } from "nostr-tools/pure";

const secrets = new Map();

/** Make a key by that name; its public half. */
export function makeKey({ name }) {
  secrets.set(name, generateSecretKey());
  return getPublicKey(secrets.get(name));
}

function tokenOf({ name, url, method, payload }) {
  const sign = (template) => finalizeEvent(template, secrets.get(name));
  return getToken(url, method, sign, true, payload);
}

/** Send a request as applications do: the URL as they have it, the payload as an object. */
export async function send({ name, url, method, payload, sentPayload = payload, fetch }) {
  const headers = { Authorization: await tokenOf({ name, url, method, payload }) };
  const init = { method: method.toUpperCase(), headers };
  if (sentPayload !== undefined) {
    init.body = JSON.stringify(sentPayload);
    headers["Content-Type"] = "application/json";
  }
  const response = await fetch(url, init);
  return { status: response.status, text: await response.text() };
}

/** Send one token with two requests, one after the other. */
export async function sendTwice({ name, url, fetch }) {
  const headers = { Authorization: await tokenOf({ name, url, method: "get" }) };
  const statuses = [];
  for (let time = 0; time < 2; time += 1) {
    statuses.push((await fetch(url, { headers })).status);
  }
  return statuses;
}

/** Sign for one address and ask another. */
export async function sendElsewhere({ name, signedUrl, url, fetch }) {
  const headers = { Authorization: await tokenOf({ name, url: signedUrl, method: "get" }) };
  return (await fetch(url, { headers })).status;
}
