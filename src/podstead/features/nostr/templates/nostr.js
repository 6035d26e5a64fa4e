// Links a Nostr key on the account page, and signs in with one, by an extension of the browser
// (NIP-07). Without this script what belongs to it stays hidden.
(() => {
  "use strict";
  /** @typedef {Partial<Record<"error" | "message" | "registerUrl", string>>} Answer */
  /** @typedef {Error & { answer?: Answer }} Refusal */
  /** @typedef {({ signEvent: (event: object) => Promise<unknown> })} Signer */
  // No element has the id "nostr": it would be what `window.nostr` is without an extension.
  const part = /** @type {HTMLElement | null} */ (document.querySelector("[data-nostr]"));
  if (!part) return;
  const { dataset } = part;
  const WAIT_MS = 1500; // extensions put themselves into a page when it is there already
  const button = /** @type {HTMLButtonElement} */ (part.querySelector("button"));
  const problem = /** @type {HTMLElement} */ (part.querySelector("[role=alert]"));
  const offered = /** @type {HTMLElement | null} */ (part.querySelector("[data-offer]"));
  const { back } = dataset; // the page to come back to, if it is not that of the account

  /** @returns {Signer | undefined} */
  const present = () => Reflect.get(window, "nostr");

  async function extension() {
    const until = Date.now() + WAIT_MS;
    while (!present() && Date.now() < until) await new Promise((done) => setTimeout(done, 50));
    const signer = present();
    if (signer) return signer;
    throw Object.assign(new Error("No extension"), { name: "NoExtension" });
  }

  /**
   * @param {string} path
   * @param {Record<string, string>} headers
   * @param {object} [body]
   */
  async function post(path, headers, body) {
    const response = await fetch(path, {
      method: "POST",
      headers: { Accept: "application/json", "Content-Type": "application/json", ...headers },
      body: body && JSON.stringify(body),
    });
    const answer = await response.json();
    if (response.ok) return answer;
    throw Object.assign(new Error(answer.message || answer.error), { answer });
  }

  /**
   * The header field by which the holder of a key proves it for one address (NIP-98).
   * @param {Signer} signer
   * @param {string} url
   * @param {string} [challenge]
   */
  async function signed(signer, url, challenge) {
    const tags = [["u", url], ["method", "POST"]];
    if (challenge) tags.push(["challenge", challenge]);
    const asked = { kind: 27235, created_at: Math.floor(Date.now() / 1000), tags, content: "" };
    /** @type {unknown} */
    let event = null;
    try {
      event = await signer.signEvent(asked);
    } catch {
      event = null;
    }
    if (!event) throw Object.assign(new Error("Not signed"), { name: "NotSigned" });
    const bytes = new TextEncoder().encode(JSON.stringify(event));
    return { Authorization: `Nostr ${btoa(String.fromCharCode(...bytes))}` };
  }

  async function link() {
    const signer = await extension();
    const { u, challenge } = await post("/idp/nostr/challenge", {}, { purpose: "link" });
    const publish = Boolean(part?.querySelector("input")?.checked);
    await post(u, await signed(signer, u, challenge), { publish });
    location.assign(back || "/idp/account");
  }

  // In an interaction its address is given, and of one use; elsewhere a challenge is asked for.
  async function signIn() {
    const signer = await extension();
    const { address, again, afterwards } = dataset;
    const asked = address ? { u: address } : await post("/idp/nostr/challenge", {}, { purpose: "sign-in" });
    const name = /** @type {HTMLInputElement | null} */ (document.getElementById("username"));
    const remember = /** @type {HTMLInputElement | null} */ (document.getElementById("remember"));
    const answer = await post(
      new URL(asked.u).pathname,
      await signed(signer, asked.u, asked.challenge),
      {
        username: name ? name.value : "",
        remember: Boolean(remember && remember.checked),
        again: Boolean(again),
      },
    );
    location.assign(afterwards || answer.redirectUrl);
  }

  /**
   * Whoever holds a key that no account has may make one with it.
   * @param {Answer} [answer]
   */
  function offer(answer) {
    const link = offered?.querySelector("a");
    if (!offered || !link) return;
    offered.hidden = !answer?.registerUrl;
    if (answer?.registerUrl) link.href = answer.registerUrl;
  }

  /** @param {Refusal} error */
  function explain(error) {
    if (error.answer) return /[.?!]$/.test(error.message) ? error.message : `${error.message}.`;
    if (error.name === "NoExtension") {
      return dataset.textMissing || "This browser has no Nostr extension, or the extension is disabled for this site. Install one, such as nos2x or Alby, and reload the page.";
    }
    if (error.name === "NotSigned") return dataset.textUnsigned || "Nothing was done: the extension did not sign.";
    return dataset.textUnreachable || "Nothing was done: the server could not be reached. Try again.";
  }

  button.addEventListener("click", async () => {
    problem.textContent = "";
    offer();
    button.disabled = true;
    try {
      await (dataset.nostr === "sign-in" ? signIn() : link());
    } catch (caught) {
      const error = /** @type {Refusal} */ (caught);
      if (error.answer && error.answer.error === "Sign in again") {
        location.assign(`/idp/login?again=nostr${back ? `&next=${encodeURIComponent(back)}` : ""}`);
      }
      problem.textContent = explain(error);
      offer(error.answer);
    } finally {
      button.disabled = false;
      if (document.activeElement === document.body) button.focus(); // which it lost meanwhile
    }
  });
  part.hidden = false;
})();
