// openid-client: an application of the web at large, which knows OpenID Connect and nothing of Solid.
// Applications are kept by name from one behaviour to the next.

import * as openid from "openid-client";

const applications = new Map();

const AUTHENTICATION = {
  client_secret_basic: openid.ClientSecretBasic,
  client_secret_post: openid.ClientSecretPost,
  none: openid.None,
};

// Everything that is signed is verified, also where the connection vouches for it.
const execute = [openid.allowInsecureRequests, openid.enableNonRepudiationChecks];

function options({ config, keys }) {
  return { DPoP: openid.getDPoPHandle(config, keys) };
}

function tokensOf(response) {
  return {
    type: response.token_type,
    accessToken: response.access_token,
    refreshToken: response.refresh_token ?? null,
    scope: response.scope,
    expiresInS: response.expires_in,
    claims: response.claims() ?? null,
  };
}

// The library keeps what the provider called its refusal beside the message.
async function told(response) {
  try {
    return await response;
  } catch (error) {
    if (error.error) error.message = `${error.error}: ${error.message}`;
    throw error;
  }
}

// Registers by what the issuer says of itself; what both say of each other.
export async function registers({ name, issuer, metadata }) {
  const authentication = AUTHENTICATION[metadata.token_endpoint_auth_method];
  const config = await openid.dynamicClientRegistration(
    new URL(issuer),
    metadata,
    authentication?.(),
    { execute },
  );
  applications.set(name, { config, keys: await openid.randomDPoPKeyPair() });
  return { server: config.serverMetadata(), client: config.clientMetadata() };
}

// The address that a person is sent to; what comes of it may be bound to the application's key.
export async function asks({ name, redirectUri, bindsCode = false, parameters }) {
  const application = applications.get(name);
  application.verifier = openid.randomPKCECodeVerifier();
  application.state = openid.randomState();
  application.nonce = openid.randomNonce();
  const handle = options(application).DPoP;
  const url = openid.buildAuthorizationUrl(application.config, {
    redirect_uri: redirectUri,
    code_challenge: await openid.calculatePKCECodeChallenge(application.verifier),
    code_challenge_method: "S256",
    state: application.state,
    nonce: application.nonce,
    ...(bindsCode ? { dpop_jkt: await handle.calculateThumbprint() } : {}),
    ...parameters,
  });
  return url.href;
}

// The person is back with a code, in the address or in a form.
export async function takes({ name, url, form = null, maxAge }) {
  const application = applications.get(name);
  const { config, verifier, state, nonce } = application;
  const current = form
    ? new Request(url, { method: "POST", body: new URLSearchParams(form) })
    : new URL(url);
  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, maxAge };
  const response = await told(
    openid.authorizationCodeGrant(config, current, checks, undefined, options(application)),
  );
  application.tokens = response;
  return tokensOf(response);
}

// A thief has all but the application's key.
export async function losesItsKey({ name }) {
  applications.get(name).keys = await openid.randomDPoPKeyPair();
}

export async function refreshes({ name, refreshToken }) {
  const application = applications.get(name);
  const response = await told(
    openid.refreshTokenGrant(application.config, refreshToken, undefined, options(application)),
  );
  application.tokens = response;
  return tokensOf(response);
}

export async function revokes({ name, token }) {
  await openid.tokenRevocation(applications.get(name).config, token);
}

export async function introspects({ name, token }) {
  return openid.tokenIntrospection(applications.get(name).config, token);
}

export async function asksWhoItIs({ name }) {
  const application = applications.get(name);
  const { access_token: token } = application.tokens;
  const { sub } = application.tokens.claims();
  return openid.fetchUserInfo(application.config, token, sub, options(application));
}

export async function gets({ name, url }) {
  const application = applications.get(name);
  const { access_token: token } = application.tokens;
  try {
    const response = await openid.fetchProtectedResource(
      application.config,
      token,
      new URL(url),
      "GET",
      undefined,
      undefined,
      options(application),
    );
    return response.status;
  } catch (error) {
    if (error instanceof openid.WWWAuthenticateChallengeError) return error.status;
    throw error;
  }
}

// The address that ends the person's session at the provider.
export async function signsOut({ name, parameters }) {
  const { config, tokens } = applications.get(name);
  const { href } = openid.buildEndSessionUrl(config, {
    id_token_hint: tokens.id_token,
    ...parameters,
  });
  return href;
}

// A script with client credentials.
export async function signsIn({ name, issuer, clientId, clientSecret, scope }) {
  const config = await openid.discovery(
    new URL(issuer),
    clientId,
    undefined,
    openid.ClientSecretBasic(clientSecret),
    { execute },
  );
  const application = { config, keys: await openid.randomDPoPKeyPair() };
  applications.set(name, application);
  const response = await openid.clientCredentialsGrant(config, { scope }, options(application));
  application.tokens = response;
  return tokensOf(response);
}
