// An application in a browser, by @inrupt/solid-client-authn-browser as its documentation shows it.

const { events, fetch, getDefaultSession, handleIncomingRedirect, login, logout } =
  solidClientAuthentication;
const page = new URL(location.pathname, location.href).href;
const at = (id) => document.getElementById(id);

function show() {
  const { isLoggedIn, webId } = getDefaultSession().info;
  at("who").textContent = isLoggedIn ? webId : "nobody";
}

events().on("error", (code) => (at("problem").textContent = code));
handleIncomingRedirect({ restorePreviousSession: true }).then(show);

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const { issuer, client, quietly } = event.target.elements;
  login({
    oidcIssuer: issuer.value,
    redirectUrl: page,
    clientName: document.title,
    ...(client.value ? { clientId: client.value } : {}),
    ...(quietly.checked ? { prompt: "none" } : {}),
  }).catch((error) => (at("problem").textContent = error.message));
});

at("document").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { url, text } = event.target.elements;
  const writes = event.submitter.name === "write";
  const headers = { "Content-Type": "text/plain" };
  const options = writes ? { method: "PUT", headers, body: text.value } : {};
  const response = await fetch(url.value, options);
  at("answer").textContent = `${response.status} ${await response.text()}`;
});

at("forget").addEventListener("click", () => logout({ logoutType: "app" }).then(show));
at("end").addEventListener("click", () => logout({ logoutType: "idp", postLogoutUrl: page }));
