// By @uvdsl/solid-oidc-client-browser, as its documentation shows it: what it keeps is a refresh
// token and a key that no script can read.

import { Session } from "./uvdsl-session.js";

const page = new URL(location.pathname, location.href).href;
const details = { redirect_uris: [page], client_name: document.title };
const library = new Session(details, { workerUrl: "uvdsl-worker.js" });

export const session = {
  async resume({ tell }) {
    await library.handleRedirectFromLogin();
    if (!library.isActive) await library.restore().catch((error) => tell(error.message));
    return library.isActive ? library.webId : null;
  },

  begin: ({ issuer }) => library.login(issuer, page),
  fetch: (url, options) => library.authFetch(url, options),
  forget: () => library.logout(),
};
