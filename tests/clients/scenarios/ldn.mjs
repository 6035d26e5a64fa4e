// What a sender of Linked Data Notifications does: find the inbox of a person, and post to it.

import { Fetcher, Namespace, graph, sym } from "rdflib";

const LDP = Namespace("http://www.w3.org/ns/ldp#");

/** Linked Data Notifications, sections 3.1 and 3.2: `about` is what the notification is for, as a rule a WebID. */
export async function send({ about, notification, type, fetch }) {
  const store = graph();
  await new Fetcher(store, { fetch }).load(about);
  const inbox = store.any(sym(about), LDP("inbox")).value;
  const offered = await fetch(inbox, { method: "OPTIONS" });
  const response = await fetch(inbox, {
    method: "POST",
    headers: { "Content-Type": type },
    body: JSON.stringify(notification),
  });
  return {
    inbox,
    accepts: offered.headers.get("Accept-Post"),
    status: response.status,
    location: new URL(response.headers.get("Location"), inbox).href,
  };
}
