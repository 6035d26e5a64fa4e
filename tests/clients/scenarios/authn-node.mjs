// @inrupt/solid-client-authn-node: applications on servers, and scripts, that sign in.
// Sessions are kept by name from one behaviour to the next, as an application keeps them from one
// request to the next.

import {
  EVENTS,
  InMemoryStorage,
  Session,
  getSessionFromStorage,
  logout,
  refreshTokens,
} from "@inrupt/solid-client-authn-node";

const sessions = new Map();
const storages = new Map();
const tokens = new Map();

function noted(name, session) {
  session.events.on(EVENTS.NEW_TOKENS, (set) => tokens.set(name, set));
  sessions.set(name, session);
  return session;
}

function state(session) {
  return { isLoggedIn: session.info.isLoggedIn, webId: session.info.webId ?? null };
}

function tokensOf(name) {
  const { accessToken, idToken, refreshToken } = tokens.get(name);
  return { accessToken, idToken, refreshToken: refreshToken ?? null };
}

// Begins to sign in; the address that the application sends the person to.
export async function begins({ name, ...options }) {
  const storage = new InMemoryStorage();
  storages.set(name, storage);
  const session = noted(name, new Session({ storage }, name));
  let sentTo = null;
  await session.login({ ...options, handleRedirect: (url) => (sentTo = url) });
  return sentTo;
}

// The person came back to the application at `url`.
export async function comesBack({ name, url }) {
  await sessions.get(name).handleIncomingRedirect(url);
  return state(sessions.get(name));
}

// A script signs in with client credentials.
export async function signsIn({ name, ...options }) {
  const session = noted(name, new Session());
  await session.login(options);
  return state(session);
}

// The session as a later process of the application finds it: signed in by its refresh token.
export async function isFoundAgain({ name }) {
  const session = await getSessionFromStorage(name, {
    storage: storages.get(name),
    refreshSession: true,
  });
  return state(noted(name, session));
}

// What the application was given.
export function tokensAre({ name }) {
  return tokensOf(name);
}

// An application that keeps tokens, and no session, gets new ones for them.
export async function refreshesTokens({ name }) {
  tokens.set(name, await refreshTokens(tokens.get(name)));
  return tokensOf(name);
}

// The same with a refresh token that it should have forgotten.
export async function refreshesTokensWith({ name, refreshToken }) {
  tokens.set(name, await refreshTokens({ ...tokens.get(name), refreshToken }));
  return tokensOf(name);
}

// A session of the tokens alone.
export async function isMadeOfTokens({ name }) {
  const session = await Session.fromTokens(tokens.get(name));
  sessions.set(name, session);
  return state(session);
}

// What the session may do with a document.
export async function puts({ name, url, body }) {
  const options = { method: "PUT", body, headers: { "Content-Type": "text/turtle" } };
  return (await sessions.get(name).fetch(url, options)).status;
}

export async function gets({ name, url }) {
  const response = await sessions.get(name).fetch(url);
  return { status: response.status, text: await response.text() };
}

// The application forgets who is signed in.
export async function signsOutOfTheApplication({ name }) {
  await sessions.get(name).logout({ logoutType: "app" });
  return state(sessions.get(name));
}

// It asks the provider to forget as well; the address that it sends the person to.
export async function signsOutOfTheProvider({ name, postLogoutUrl }) {
  let sentTo = null;
  await sessions.get(name).logout({
    logoutType: "idp",
    postLogoutUrl,
    handleRedirect: (url) => (sentTo = url),
  });
  return sentTo;
}

// The same for an application that keeps tokens, and no session.
export async function endsTheSessionOfTokens({ name, postLogoutUrl }) {
  let sentTo = null;
  await logout(tokens.get(name), (url) => (sentTo = url), postLogoutUrl);
  return sentTo;
}
