// By @inrupt/solid-client-authn-browser, as its documentation shows it. Its bundle is a classic
// script, which leaves its exports in a variable of the page.

await new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.addEventListener("load", resolve);
  script.addEventListener("error", reject);
  script.src = "solid-client-authn.bundle.js";
  document.head.append(script);
});
const library = globalThis.solidClientAuthentication;

export const session = {
  async resume({ tell }) {
    library.events().on("error", tell);
    await library.handleIncomingRedirect({ restorePreviousSession: true });
    const { isLoggedIn, webId } = library.getDefaultSession().info;
    return isLoggedIn ? webId : null;
  },

  begin({ issuer, client, quietly, page, name }) {
    return library.login({
      oidcIssuer: issuer,
      redirectUrl: page,
      clientName: name,
      ...(client ? { clientId: client } : {}),
      ...(quietly ? { prompt: "none" } : {}),
    });
  },

  fetch: (url, options) => library.fetch(url, options),
  forget: () => library.logout({ logoutType: "app" }),
  end: (page) => library.logout({ logoutType: "idp", postLogoutUrl: page }),
};
