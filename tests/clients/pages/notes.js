// An application in a browser. How it signs people in is up to `session.js`, one for each library:
//   resume()                     who is signed in when the page is loaded; null for nobody
//   begin({issuer, client, …})   leads the browser to the provider
//   fetch(url, options)          as the person
//   forget(), end()              sign out here, and at the provider

import { session } from "./session.js";

const page = new URL(location.pathname, location.href).href;
const at = (id) => document.getElementById(id);
const show = (webId) => (at("who").textContent = webId ?? "nobody");
const tell = (problem) => (at("problem").textContent = problem);

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const { issuer, client, quietly } = event.target.elements;
  const asked = { issuer: issuer.value, client: client.value, quietly: quietly.checked };
  session.begin({ ...asked, page, name: document.title }).catch((error) => tell(error.message));
});

at("document").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { url, text } = event.target.elements;
  const writes = event.submitter.name === "write";
  const headers = { "Content-Type": "text/plain" };
  const options = writes ? { method: "PUT", headers, body: text.value } : {};
  const response = await session.fetch(url.value, options);
  at("answer").textContent = `${response.status} ${await response.text()}`;
});

at("forget").addEventListener("click", () => session.forget().then(() => show(null)));
at("end").addEventListener("click", () => session.end(page));

show(await session.resume({ tell }));
