// An application without a browser that signs in with client credentials at any provider, by
// @inrupt/solid-client-authn-node, and then uses resources anywhere.

import { Session } from "@inrupt/solid-client-authn-node";

async function signedIn({ issuer, clientId, clientSecret }) {
  const session = new Session();
  await session.login({ oidcIssuer: issuer, clientId, clientSecret });
  if (!session.info.isLoggedIn) throw new Error("The provider let nobody in");
  return session;
}

/** The WebID that the session is for, and the answers to requests that it makes one by one. */
export async function asks({ issuer, clientId, clientSecret, asked }) {
  const session = await signedIn({ issuer, clientId, clientSecret });
  const answers = [];
  for (const { url, method, body, type } of asked) {
    const headers = type ? { "Content-Type": type } : {};
    const response = await session.fetch(url, { method: method ?? "GET", body, headers });
    answers.push({ status: response.status, text: await response.text() });
  }
  return { webId: session.info.webId, answers };
}
