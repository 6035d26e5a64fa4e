// Adds a passkey on the account page, and signs in with one. Without this script, or in a browser
// that knows no passkeys, what belongs to them stays hidden.
(() => {
  "use strict";
  const part = document.getElementById("passkeys");
  if (!part || !window.PublicKeyCredential || !navigator.credentials) return;
  const button = part.querySelector("button");
  const problem = part.querySelector("[role=alert]");
  const { back } = part.dataset; // the page to come back to, if it is not that of the account
  let waiting = null; // the request behind the suggestions of the browser (conditional mediation)

  const toBytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

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
    const described = (each) => ({ ...each, id: toBytes(each.id) });
    const credential = await navigator.credentials.create({
      publicKey: {
        ...options,
        challenge: toBytes(options.challenge),
        user: { ...options.user, id: toBytes(options.user.id) },
        excludeCredentials: options.excludeCredentials.map(described),
      },
    });
    const response = {
      clientDataJSON: toText(credential.response.clientDataJSON),
      attestationObject: toText(credential.response.attestationObject),
      transports: credential.response.getTransports ? credential.response.getTransports() : [],
    };
    await post("register/verify", {
      challengeKey,
      credential: { ...common(credential), response },
      name: part.querySelector("input").value,
    });
    location.assign(back || "/idp/account");
  }

  async function signIn(how) {
    const asked = await post("login/options", { interaction: part.dataset.interaction });
    const { challengeKey, ...options } = asked;
    const credential = await navigator.credentials.get({
      ...how,
      publicKey: { ...options, challenge: toBytes(options.challenge) },
    });
    const { clientDataJSON, authenticatorData, signature, userHandle } = credential.response;
    const response = {
      clientDataJSON: toText(clientDataJSON),
      authenticatorData: toText(authenticatorData),
      signature: toText(signature),
      userHandle: userHandle && userHandle.byteLength ? toText(userHandle) : null,
    };
    const remember = document.getElementById("remember");
    const answer = await post("login/verify", {
      challengeKey,
      credential: { ...common(credential), response },
      remember: Boolean(remember && remember.checked),
    });
    location.assign(part.dataset.afterwards || answer.redirectUrl);
  }

  function explain(error) {
    if (error.answer) return error.message;
    if (error.name === "InvalidStateError") return part.dataset.textKnown || "This device already has a passkey for your account.";
    if (error.name === "NotAllowedError") return part.dataset.textCancelled || "Nothing was done: the request was cancelled or took too long.";
    return part.dataset.textUnusable || "The browser could not use a passkey here.";
  }

  async function suggest() {
    const isKnown = PublicKeyCredential.isConditionalMediationAvailable;
    if (!isKnown || !(await isKnown.call(PublicKeyCredential))) return;
    waiting = new AbortController();
    try {
      await signIn({ mediation: "conditional", signal: waiting.signal });
    } catch (error) {
      // Nobody asked for it: only what the server said of a passkey that was chosen is shown.
      if (error.answer && error.answer.error !== "Too Many Requests") problem.textContent = error.message;
    }
  }

  button.addEventListener("click", async () => {
    if (waiting) waiting.abort();
    problem.textContent = "";
    button.disabled = true;
    try {
      await (part.dataset.passkeys === "add" ? add() : signIn({}));
    } catch (error) {
      if (error.answer && error.answer.error === "Sign in again") {
        location.assign(`/idp/login?again=passkeys${back ? `&next=${encodeURIComponent(back)}` : ""}`);
      }
      problem.textContent = explain(error);
    } finally {
      button.disabled = false;
    }
  });
  part.hidden = false;
  if (part.dataset.passkeys === "sign-in") suggest();
})();
