// Who has to judge our tokens: jose, by the keys that the provider publishes, and the verifier of
// other Solid servers, @solid/access-token-verifier. The tokens come from openid-client.

import { randomUUID } from "node:crypto";
import { createSolidTokenVerifier } from "@solid/access-token-verifier";
import * as jose from "jose";
import * as openid from "openid-client";

// Where the provider says that its keys are.
async function keysOf(issuer) {
  const response = await fetch(`${issuer}/.well-known/openid-configuration`);
  return new URL((await response.json()).jwks_uri);
}

// The tokens of a script that signs in, bound to a key of its own, which comes along.
export async function signsIn({ issuer, clientId, clientSecret }) {
  const config = await openid.discovery(
    new URL(issuer),
    clientId,
    undefined,
    openid.ClientSecretBasic(clientSecret),
    { execute: [openid.allowInsecureRequests] },
  );
  const keys = await openid.randomDPoPKeyPair("ES256", { extractable: true });
  const tokens = await openid.clientCredentialsGrant(
    config,
    { scope: "openid webid" },
    { DPoP: openid.getDPoPHandle(config, keys) },
  );
  return {
    accessToken: tokens.access_token,
    idToken: tokens.id_token,
    key: await jose.exportJWK(keys.privateKey),
  };
}

// Header and claims of a token that one of the published keys has signed.
export async function verifies({ token, issuer, audience, type }) {
  const keys = jose.createRemoteJWKSet(await keysOf(issuer));
  const expected = { issuer, audience, typ: type ?? undefined };
  const { protectedHeader, payload } = await jose.jwtVerify(token, keys, expected);
  return { header: protectedHeader, claims: payload };
}

// What each published key is called, and what it would be called by its content.
export async function readsKeys({ issuer }) {
  const { keys } = await (await fetch(await keysOf(issuer))).json();
  const read = async (key) => {
    const imported = await jose.importJWK(key);
    return {
      type: imported.type,
      named: key.kid,
      thumbprint: await jose.calculateJwkThumbprint(key),
      algorithm: key.alg,
    };
  };
  return Promise.all(keys.map(read));
}

export async function makesAKey() {
  const { privateKey } = await jose.generateKeyPair("ES256", { extractable: true });
  return jose.exportJWK(privateKey);
}

export async function thumbprint({ key }) {
  return jose.calculateJwkThumbprint(key);
}

// What a Solid server makes of a request with the token and a proof by the key.
export async function judges({ token, key, url, provedUrl = url }) {
  const { d, ...publicKey } = key;
  const proof = await new jose.SignJWT({ htm: "GET", htu: provedUrl, jti: randomUUID() })
    .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk: publicKey })
    .setIssuedAt()
    .sign(await jose.importJWK(key, "ES256"));
  const verify = createSolidTokenVerifier();
  return verify(`DPoP ${token}`, { header: proof, method: "GET", url });
}
