// Adds a passkey on the account page, and signs in with one. Without this script, or in a browser
// that knows no passkeys, what belongs to them stays hidden.
(() => {
  "use strict";
  /** @typedef {Error & { answer?: { error?: string, message?: string }, status?: number }} Refusal */
  const part = document.getElementById("passkeys");
  if (!part || !window.PublicKeyCredential || !navigator.credentials) return;
  const { dataset } = part;
  const button = /** @type {HTMLButtonElement} */ (part.querySelector("button"));
  const problem = /** @type {HTMLElement} */ (part.querySelector("[role=alert]"));
  const { back } = dataset; // the page to come back to, if it is not that of the account
  /** @type {AbortController | null} */
  let waiting = null; // the request behind the suggestions of the browser (conditional mediation)

  const toBytes = (/** @type {string} */ text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
  const toText = (/** @type {ArrayBuffer} */ buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  /**
   * @param {string} path
   * @param {object} body
   */
  async function post(path, body) {
    const response = await fetch(`/idp/passkey/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (response.ok) return answer;
    throw Object.assign(new Error(answer.message || answer.error), { answer, status: response.status });
  }

  /** @param {PublicKeyCredential} credential */
  function common(credential) {
    return {
      id: credential.id,
      rawId: toText(credential.rawId),
      type: credential.type,
      authenticatorAttachment: credential.authenticatorAttachment || undefined,
      clientExtensionResults: credential.getClientExtensionResults(),
    };
  }

  async function add() {
    const { challengeKey, ...options } = await post("register/options", {});
    const described = (/** @type {({ id: string })} */ each) => ({ ...each, id: toBytes(each.id) });
    const credential = /** @type {PublicKeyCredential} */ (
      await navigator.credentials.create({
        publicKey: {
          ...options,
          challenge: toBytes(options.challenge),
          user: { ...options.user, id: toBytes(options.user.id) },
          excludeCredentials: options.excludeCredentials.map(described),
        },
      })
    );
    const created = /** @type {AuthenticatorAttestationResponse} */ (credential.response);
    const response = {
      clientDataJSON: toText(created.clientDataJSON),
      attestationObject: toText(created.attestationObject),
      transports: typeof created.getTransports === "function" ? created.getTransports() : [],
    };
    await post("register/verify", {
      challengeKey,
      credential: { ...common(credential), response },
      name: part?.querySelector("input")?.value,
    });
    location.assign(back || "/idp/account");
  }

  /** @param {CredentialRequestOptions} how */
  async function signIn(how) {
    const asked = await post("login/options", { interaction: dataset.interaction });
    const { challengeKey, ...options } = asked;
    const credential = /** @type {PublicKeyCredential} */ (
      await navigator.credentials.get({
        ...how,
        publicKey: { ...options, challenge: toBytes(options.challenge) },
      })
    );
    const { clientDataJSON, authenticatorData, signature, userHandle } =
      /** @type {AuthenticatorAssertionResponse} */ (credential.response);
    const response = {
      clientDataJSON: toText(clientDataJSON),
      authenticatorData: toText(authenticatorData),
      signature: toText(signature),
      userHandle: userHandle && userHandle.byteLength ? toText(userHandle) : null,
    };
    const remember = /** @type {HTMLInputElement | null} */ (document.getElementById("remember"));
    const answer = await post("login/verify", {
      challengeKey,
      credential: { ...common(credential), response },
      remember: Boolean(remember && remember.checked),
    });
    location.assign(dataset.afterwards || answer.redirectUrl);
  }

  /** @param {Refusal} error */
  function explain(error) {
    if (error.answer) return error.message;
    if (error.name === "InvalidStateError") return dataset.textKnown || "This device already has a passkey for your account.";
    if (error.name === "NotAllowedError") return dataset.textCancelled || "Nothing was done: the request was cancelled or took too long.";
    return dataset.textUnusable || "The browser could not use a passkey here.";
  }

  async function suggest() {
    const isKnown = PublicKeyCredential.isConditionalMediationAvailable;
    if (!isKnown || !(await isKnown.call(PublicKeyCredential))) return;
    waiting = new AbortController();
    try {
      await signIn({ mediation: "conditional", signal: waiting.signal });
    } catch (caught) {
      const error = /** @type {Refusal} */ (caught);
      // Nobody asked for it: only what the server said of a passkey that was chosen is shown.
      if (error.answer && error.answer.error !== "Too Many Requests") problem.textContent = error.message;
    }
  }

  button.addEventListener("click", async () => {
    if (waiting) waiting.abort();
    problem.textContent = "";
    button.disabled = true;
    try {
      await (dataset.passkeys === "add" ? add() : signIn({}));
    } catch (caught) {
      const error = /** @type {Refusal} */ (caught);
      if (error.answer && error.answer.error === "Sign in again") {
        location.assign(`/idp/login?again=passkeys${back ? `&next=${encodeURIComponent(back)}` : ""}`);
      }
      problem.textContent = explain(error);
    } finally {
      button.disabled = false;
    }
  });
  part.hidden = false;
  if (dataset.passkeys === "sign-in") suggest();
})();
