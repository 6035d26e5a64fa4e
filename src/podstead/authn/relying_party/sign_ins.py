"""Signs people in at other providers in two steps, before and after their visit there.

A sign-in belongs to the browser in which it began and can be finished once. It is finished only by
the provider that it was begun with (RFC 9700 section 4.4, mix-up attacks): each provider has a
redirect URI of its own, a response that arrives at another one or names another provider is refused
before its code is sent anywhere, and the token must be that provider's own.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlencode

import msgspec

from podstead.authn.relying_party import providers as foreign_providers
from podstead.core import base64url
from podstead.core.errors import OutboundError, RemoteUnavailable
from podstead.jose.tokens import InvalidJose, Json, SigningKeyPair, read_object
from podstead.storage.record_store import RecordKind, RecordStore, secret_key

# Composes the requests of a sign-in at another provider.
#
# Pure: the secrets of a sign-in follow from the secret of the browser and from the ``state``, so
# that nothing secret is stored. Authorization code flow with PKCE (RFC 6749 section 4.1, RFC 7636)
# and a DPoP proof (RFC 9449 section 5). The OAuth library of this server's own provider is not
# used: it would add a fifth of a second to the start of servers without one, for no more than query
# strings and a hash.

SCOPE: Final = "openid webid"


@dataclass(frozen=True, slots=True)
class SignInSecrets:
    """The secrets of one sign-in, known only to this browser and this server."""

    verifier: str
    nonce: str

    @property
    def challenge(self) -> str:
        """The code challenge (RFC 7636 section 4.2)."""
        return base64url.encoded(hashlib.sha256(self.verifier.encode("ascii")).digest())


def sign_in_secrets(browser_secret: str, state: str) -> SignInSecrets:
    """The secrets of the sign-in with this ``state``."""

    def derived(purpose: str) -> str:
        message = f"{purpose} {state}".encode()
        return base64url.encoded(hmac.digest(browser_secret.encode(), message, "sha256"))

    return SignInSecrets(verifier=derived("verifier"), nonce=derived("nonce"))


def authorization_url(
    provider: foreign_providers.ForeignProvider,
    *,
    client_id: str,
    redirect_uri: str,
    state: str,
    secrets: SignInSecrets,
) -> str:
    """Where the person signs in (RFC 6749 section 4.1.1)."""
    parameters = urlencode(
        {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPE,
            "state": state,
            "nonce": secrets.nonce,
            "code_challenge": secrets.challenge,
            "code_challenge_method": "S256",
        }
    )
    endpoint = provider.authorization_endpoint
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{parameters}"


def token_request(*, code: str, client_id: str, redirect_uri: str, secrets: SignInSecrets) -> bytes:
    """The exchange of a code (RFC 6749 section 4.1.3), as a form."""
    return urlencode(
        {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": client_id,
            "code_verifier": secrets.verifier,
        }
    ).encode("ascii")


def proof_claims(
    token_endpoint: str, *, proof_id: str, now_s: int, nonce: str | None
) -> Mapping[str, object]:
    """The claims of the proof for the token request (RFC 9449 section 4.2)."""
    claims: dict[str, object] = {
        "jti": proof_id,
        "htm": "POST",
        "htu": token_endpoint.partition("?")[0],
        "iat": now_s,
    }
    return claims if nonce is None else {**claims, "nonce": nonce}


def client_metadata(*, name: str, uri: str, redirect_uri: str) -> Mapping[str, object]:
    """What providers learn about this server as a client (RFC 7591 section 2)."""
    return {
        "client_name": name,
        "client_uri": uri,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "scope": SCOPE,
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }


def client_document(client_id: str, metadata: Mapping[str, object]) -> bytes:
    """The Client ID Document of this server (Solid-OIDC section 5.1)."""
    context = "https://www.w3.org/ns/solid/oidc-context.jsonld"
    return json.dumps({"@context": context, "client_id": client_id, **metadata}).encode()


VISIT_S: Final = 600
"""How long a person may take at the provider."""
MAX_CODE_CHARACTERS: Final = 4096

_KEY_CHARACTERS: Final = 32
_SECRET_BYTES: Final = 32
_OK: Final = (200, 201)
_JSON: Final = "application/json"


class PendingSignIn(msgspec.Struct, frozen=True):
    """A sign-in that has begun; the key is the hash of its ``state``. ``browser`` is the hash of
    the browser's secret."""

    browser: str
    issuer: str
    token_endpoint: str
    names_itself: bool
    client_id: str
    afterwards: str


VISITS: Final = RecordKind("visit", PendingSignIn)


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    """The response to a request to a provider."""

    status: int
    content: bytes
    fields: Mapping[str, str]
    """The header fields, with names in lower case."""


class ProviderClient(Protocol):
    """Sends requests to providers, guarded and limited as all outgoing requests are."""

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> ProviderResponse:
        """The response to a POST, whatever its status. Raises OutboundError."""


@dataclass(frozen=True, slots=True)
class OwnClient:
    """This server as a client: a separate client for each provider, with one redirect URI.

    ``callback`` and ``documents`` are the URLs below which those of all providers are.
    """

    name: str
    uri: str
    callback: str
    documents: str
    has_reachable_documents: bool
    """Whether providers can read the documents."""

    def redirect_uri(self, key: str) -> str:
        """Where a provider sends people back to; ``key`` is that of :func:`provider_key`."""
        return self.callback + key

    def metadata(self, key: str) -> Mapping[str, object]:
        """The metadata that the provider receives."""
        return client_metadata(name=self.name, uri=self.uri, redirect_uri=self.redirect_uri(key))

    def document(self, key: str) -> bytes:
        """The Client ID Document for the provider (Solid-OIDC section 5.1)."""
        return client_document(self.documents + key, self.metadata(key))


def provider_key(issuer: str) -> str:
    """The key of a provider in URLs of this server."""
    return hashlib.sha256(issuer.removesuffix("/").encode()).hexdigest()[:_KEY_CHARACTERS]


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """Where the person signs in, and the name of the provider's host."""

    url: str
    issuer: str


@dataclass(frozen=True, slots=True)
class CompletedSignIn:
    """The WebID that has signed in, its provider, the page to continue at, and the id of the
    session at the provider, if it names one."""

    web_id: str
    issuer: str
    afterwards: str
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalSignIns:
    """Begins and finishes sign-ins."""

    client: OwnClient
    providers: foreign_providers.ProviderFinder
    asks: ProviderClient
    id_tokens: foreign_providers.IdTokenVerifier
    records: RecordStore

    async def begin(
        self, typed: str, *, browser_secret: str, afterwards: str, client_address: str
    ) -> StartedSignIn:
        """Begin a sign-in with the provider that the person means. Raises ExternalSignInFailed,
        RateLimited."""
        provider = await self.providers.find(typed, client_address)
        client_id = await self._client_id(provider)
        state = self.records.randomness.token_hex(_SECRET_BYTES)
        visit = PendingSignIn(
            browser=secret_key(browser_secret),
            issuer=provider.issuer,
            token_endpoint=provider.token_endpoint,
            names_itself=provider.names_itself,
            client_id=client_id,
            afterwards=afterwards,
        )
        expires_ms = self.records.now_ms() + VISIT_S * 1000
        await self.records.commit([VISITS.put(secret_key(state), visit, expires_ms=expires_ms)])
        url = authorization_url(
            provider,
            client_id=client_id,
            redirect_uri=self.client.redirect_uri(provider_key(provider.issuer)),
            state=state,
            secrets=sign_in_secrets(browser_secret, state),
        )
        return StartedSignIn(url, provider.issuer)

    async def finish(
        self, answer: Mapping[str, str], *, key: str, browser_secret: str | None
    ) -> CompletedSignIn:
        """Finish the sign-in that an authorization response answers, which has come to the redirect
        URI with ``key``. Raises ExternalSignInFailed."""
        state = answer.get("state", "")
        visit = await self._take(state, browser_secret)
        if key != provider_key(visit.issuer):
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.INVALID)
        named = answer.get("iss")
        if named != visit.issuer and (named is not None or visit.names_itself):
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.INVALID)
        code = answer.get("code", "")
        if "error" in answer or not code or len(code) > MAX_CODE_CHARACTERS:
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.DECLINED)
        secrets = sign_in_secrets(browser_secret or "", state)
        request = token_request(
            code=code,
            client_id=visit.client_id,
            redirect_uri=self.client.redirect_uri(key),
            secrets=secrets,
        )
        tokens = await self._exchange(visit.token_endpoint, request)
        id_token = tokens.get("id_token")
        if not isinstance(id_token, str):
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.INVALID)
        expected = foreign_providers.ExpectedIdToken(visit.issuer, visit.client_id, secrets.nonce)
        web_id, session_id = await self.id_tokens.verify(id_token, expected)
        return CompletedSignIn(web_id, visit.issuer, visit.afterwards, session_id)

    # --- steps --------------------------------------------------------------------------------

    async def _client_id(self, provider: foreign_providers.ForeignProvider) -> str:
        """The identifier of this server at the provider: the address of its document, or one that
        the provider assigns (RFC 7591)."""
        client, key = self.client, provider_key(provider.issuer)
        if provider.reads_client_documents and client.has_reachable_documents:
            return client.documents + key
        if provider.registration_endpoint is None:
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.UNUSABLE)
        headers = {"Content-Type": _JSON, "Accept": _JSON}
        answered = await self._ask(
            provider.registration_endpoint, json.dumps(client.metadata(key)).encode(), headers
        )
        client_id = _read(answered, foreign_providers.SignInProblem.UNUSABLE).get("client_id")
        if not isinstance(client_id, str) or not client_id:
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.UNUSABLE)
        return client_id

    async def _take(self, state: str, browser_secret: str | None) -> PendingSignIn:
        """Take the sign-in with this ``state``, which can be finished only once. Raises
        ExternalSignInFailed."""
        stored = await self.records.read(VISITS, secret_key(state))
        if stored is None or browser_secret is None:
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.EXPIRED)
        if not hmac.compare_digest(stored.value.browser, secret_key(browser_secret)):
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.EXPIRED)
        if not await self.records.try_commit([VISITS.drop(stored.key)], [stored.unchanged]):
            raise foreign_providers.ExternalSignInFailed(foreign_providers.SignInProblem.EXPIRED)
        return stored.value

    async def _exchange(self, endpoint: str, request: bytes) -> Json:
        """The response to a token request, with a new key for its proof. Raises
        ExternalSignInFailed."""
        key = SigningKeyPair.generate("ES256")
        answered = await self._ask_with_proof(endpoint, request, key, None)
        nonce = answered.fields.get("dpop-nonce")
        if answered.status not in _OK and nonce is not None:
            answered = await self._ask_with_proof(endpoint, request, key, nonce)
        return _read(answered, foreign_providers.SignInProblem.INVALID)

    async def _ask_with_proof(
        self, endpoint: str, request: bytes, key: SigningKeyPair, nonce: str | None
    ) -> ProviderResponse:
        claims = proof_claims(
            endpoint,
            proof_id=self.records.randomness.token_hex(16),
            now_s=self.records.now_s(),
            nonce=nonce,
        )
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": _JSON,
            "DPoP": key.prove(claims),
        }
        return await self._ask(endpoint, request, headers)

    async def _ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> ProviderResponse:
        try:
            return await self.asks.ask(url, content, headers)
        except RemoteUnavailable as error:
            raise foreign_providers.ExternalSignInFailed(
                foreign_providers.SignInProblem.UNREACHABLE
            ) from error
        except OutboundError as error:
            raise foreign_providers.ExternalSignInFailed(
                foreign_providers.SignInProblem.UNUSABLE
            ) from error


def _read(answered: ProviderResponse, problem: foreign_providers.SignInProblem) -> Json:
    """The JSON object of a successful response. Raises ExternalSignInFailed for any other."""
    if answered.status not in _OK:
        raise foreign_providers.ExternalSignInFailed(problem)
    try:
        return read_object(answered.content)
    except InvalidJose as error:
        raise foreign_providers.ExternalSignInFailed(problem) from error
