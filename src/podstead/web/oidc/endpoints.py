"""The endpoints of OAuth that applications call directly (RFC 6749 section 3.2).

Each endpoint reads its own credentials, a client's secret or a token, instead of authenticating the
request as the resource server does. Pages of any origin may call them, without cookies (A-46).
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.authn import credentials
from podstead.authn.claims import CommonClaims
from podstead.authn.resource_tokens import AccessTokenVerifier, InvalidProof, ProofVerifier
from podstead.core import errors
from podstead.core.clock import Clock
from podstead.core.identity import Identity
from podstead.idp import client_metadata, token_issuing
from podstead.idp.clients import ClientDirectory, ClientUnavailable
from podstead.idp.keys import ProviderKeys
from podstead.idp.oauth.messages import OAuthAnswer, refused, unavailable, unknown_client
from podstead.idp.records import Client
from podstead.idp.token_issuing import userinfo_url
from podstead.idp.token_service import TokenService, TokenStatus
from podstead.jose.proof import ProofContext
from podstead.jose.tokens import InvalidJose, Json, read_object
from podstead.storage.protocol import RateCounters
from podstead.web.asgi import Headers
from podstead.web.cors import CorsPolicy
from podstead.web.description_endpoints import public_document
from podstead.web.forms import MAX_JSON_BYTES, Fields, only, read_form
from podstead.web.limits import InvalidCredentialLimit, address_key, network_key, take
from podstead.web.request import Request
from podstead.web.response import Response, empty_response, json_content_response
from podstead.web.routes import route

NO_STORE: Final = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
_OWN: Final = frozenset(name for name, _ in NO_STORE)


def oauth_json_response(answer: OAuthAnswer) -> Response:
    """The HTTP response for an OAuth response."""
    headers = [*NO_STORE, *_further(answer.headers)]
    return json_content_response(answer.body, status=answer.status, headers=headers)


def _further(headers: Sequence[tuple[str, str]]) -> Headers:
    lowered = [(n.lower().encode("ascii"), v.encode("latin-1")) for n, v in headers]
    return [each for each in lowered if each[0] not in _OWN]


TOKEN_FAILURES_PER_MINUTE: Final = 30
"""The maximum number of token requests from one address that may fail in a minute."""
SECRET_S: Final = 10 * 365 * 24 * 3600
"""How far ahead the stated expiry of a client secret lies. Secrets do not expire, but some clients
read the 0 of RFC 7591 section 3.2.1 as a date in the past."""


class ProtocolEndpoints:
    """Token, registration, introspection, revocation, keys and description."""

    def __init__(
        self,
        *,
        issuer: str,
        tokens: TokenService,
        status: TokenStatus,
        clients: ClientDirectory,
        keys: ProviderKeys,
        proofs: ProofVerifier,
        counters: RateCounters,
        registrations_per_hour: int,
        registration_open: Callable[[], bool],
        clock: Clock,
        description: Mapping[str, object],
    ) -> None:
        """``registration_open`` tells whether people may create accounts; ``description`` are
        further members of the discovery document."""
        self._issuer = issuer
        self._tokens = tokens
        self._status = status
        self._clients = clients
        self._keys = keys
        self._proofs = proofs
        self._counters = counters
        self._registrations_per_hour = registrations_per_hour
        self._clock = clock
        self._registration_open = registration_open
        self._descriptions = {
            is_open: msgspec.json.encode(
                token_issuing.provider_description(
                    issuer, registration_open=is_open, further=description
                )
            )
            for is_open in (True, False)
        }

    # --- what the provider is -----------------------------------------------------------------

    @route(token_issuing.OPENID_PATH, "GET", "HEAD", sharing=CorsPolicy.REFLECTED)
    @route(token_issuing.OAUTH_PATH, "GET", "HEAD", sharing=CorsPolicy.REFLECTED)
    async def describe(self, request: Request, _: Identity | None) -> Response:
        """``GET /.well-known/openid-configuration`` (A-41)."""
        return public_document(request, self._descriptions[self._registration_open()])

    @route(token_issuing.JWKS_PATH, "GET", "HEAD", sharing=CorsPolicy.REFLECTED)
    async def key_set(self, request: Request, _: Identity | None) -> Response:
        """``GET /.well-known/jwks.json`` (A-42). Raises StorageError."""
        published = (await self._keys.current()).published()
        content = msgspec.json.encode({"keys": published})
        return public_document(request, content)

    # --- tokens -------------------------------------------------------------------------------

    @route(token_issuing.TOKEN_PATH, "POST", sharing=CorsPolicy.ANYONE)
    async def token(self, request: Request, _: Identity | None) -> Response:
        """``POST /idp/token`` (A-62 to A-68). Raises RateLimited, ServerTrouble."""
        try:
            form = await read_form(request)
        except (errors.BadRequest, errors.BodyTooLarge) as error:
            return oauth_json_response(refused("invalid_request", str(error)))
        try:
            jkt = await self.proven_key(request, token_issuing.TOKEN_PATH)
        except InvalidProof as error:
            return oauth_json_response(refused(error.error, str(error)))
        try:
            answer = await self._tokens.respond(
                form, authorization=_authorization(request), jkt=jkt
            )
        except ClientUnavailable as error:
            return oauth_json_response(unavailable(error.retry_after_s))
        if answer.body.get("error") in ("invalid_client", "invalid_grant"):
            await self._count_failure(request)
        return oauth_json_response(answer)

    @route(token_issuing.INTROSPECTION_PATH, "POST", sharing=CorsPolicy.ANYONE)
    async def introspect(self, request: Request, _: Identity | None) -> Response:
        """``POST /idp/token/introspection`` (RFC 7662). Raises RateLimited, ServerTrouble."""
        try:
            form, client = await self._form_and_client(request)
            text = only(form, "token")
        except (errors.BadRequest, errors.BodyTooLarge) as error:
            return oauth_json_response(refused("invalid_request", str(error)))
        except ClientUnavailable as error:
            return oauth_json_response(unavailable(error.retry_after_s))
        if client is None or client.auth_method == "none":
            return await self._unknown_client(request)
        if text is None:
            return oauth_json_response(refused("invalid_request", "The token is missing"))
        return oauth_json_response(OAuthAnswer(200, await self._status.introspect(text, client)))

    @route(token_issuing.REVOCATION_PATH, "POST", sharing=CorsPolicy.ANYONE)
    async def revoke(self, request: Request, _: Identity | None) -> Response:
        """``POST /idp/token/revocation`` (RFC 7009). Raises RateLimited, ServerTrouble."""
        try:
            form, client = await self._form_and_client(request)
            text = only(form, "token")
        except (errors.BadRequest, errors.BodyTooLarge) as error:
            return oauth_json_response(refused("invalid_request", str(error)))
        except ClientUnavailable as error:
            return oauth_json_response(unavailable(error.retry_after_s))
        if client is None:
            return await self._unknown_client(request)
        if text is None:
            return oauth_json_response(refused("invalid_request", "The token is missing"))
        await self._status.revoke(text, client)
        return empty_response(200, NO_STORE)

    # --- clients ------------------------------------------------------------------------------

    @route(token_issuing.REGISTRATION_PATH, "POST", sharing=CorsPolicy.ANYONE)
    async def register(self, request: Request, _: Identity | None) -> Response:
        """``POST /idp/reg`` (RFC 7591). Raises RateLimited, ServerTrouble."""
        await take(
            self._counters,
            f"registration:{address_key(request.client_address)}",
            capacity=self._registrations_per_hour,
            period_s=3600,
            clock=self._clock,
        )
        try:
            sent = await self._json(request)
            registered = await self._clients.register(
                sent, network=network_key(request.client_address)
            )
        except client_metadata.UnusableMetadata as error:
            return oauth_json_response(refused(error.error, str(error)))
        client = registered.client
        body = client_metadata.registered_metadata(client)
        if registered.secret is not None:
            body |= {
                "client_secret": registered.secret,
                "client_secret_expires_at": client.issued_s + SECRET_S,
            }
        body |= {
            "registration_access_token": registered.registration_token,
            "registration_client_uri": self._registration_uri(client),
        }
        return oauth_json_response(OAuthAnswer(201, body))

    @route(
        token_issuing.REGISTRATION_PATH + "/{client_id}", "GET", "DELETE", sharing=CorsPolicy.ANYONE
    )
    async def registration(self, request: Request, _: Identity | None) -> Response:
        """``GET`` or ``DELETE /idp/reg/{client_id}`` (RFC 7592). Raises ServerTrouble."""
        client_id = request.path.rpartition("/")[2]
        credential = None
        if request.fields.authorization:
            credential = credentials.read_credential(request.fields.authorization)
        client = None
        if isinstance(credential, credentials.UnverifiedBearer):
            client = await self._clients.managed(client_id, credential.token)
        if client is None:
            raise errors.NotAuthenticated("Invalid token", invalid=True, scheme="Bearer")
        if request.method == "DELETE":
            await self._clients.remove(client_id)
            return empty_response(204, NO_STORE)
        body = client_metadata.registered_metadata(client) | {
            "registration_client_uri": self._registration_uri(client)
        }
        return oauth_json_response(OAuthAnswer(200, body))

    # --- parts --------------------------------------------------------------------------------

    async def proven_key(self, request: Request, path: str) -> str | None:
        """The thumbprint of the key whose possession a request proves, ``None`` without a proof.

        ``path`` is that of the endpoint, since a proof must name it. Raises InvalidProof and
        Overloaded.
        """
        if not request.fields.proofs:
            return None
        if len(request.fields.proofs) > 1:
            raise InvalidProof("Send only one DPoP header")
        text = request.fields.proofs[0].strip(b" \t").decode("latin-1")
        url = self._issuer + path
        proof = self._proofs.check(text, ProofContext(request.method, url))
        await self._proofs.use(proof)
        return proof.thumbprint

    async def _form_and_client(self, request: Request) -> tuple[Fields, Client | None]:
        """The form, and the client that has authenticated with it."""
        form = await read_form(request)
        try:
            presented = client_metadata.presented_client(form, _authorization(request))
        except client_metadata.UnreadableClient:
            return form, None
        if presented is None:
            return form, None
        client = await self._tokens.client(presented.client_id)
        if client is None or not client_metadata.authenticates(client, presented):
            return form, None
        return form, client

    async def _unknown_client(self, request: Request) -> Response:
        await self._count_failure(request)
        return oauth_json_response(unknown_client())

    async def _count_failure(self, request: Request) -> None:
        await take(
            self._counters,
            f"token-failure:{address_key(request.client_address)}",
            capacity=TOKEN_FAILURES_PER_MINUTE,
            period_s=60,
            clock=self._clock,
        )

    async def _json(self, request: Request) -> Json:
        content_type = request.fields.get(b"content-type") or ""
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise errors.UnsupportedMediaType("Send the metadata as application/json")
        content = await request.body.read(limit_bytes=MAX_JSON_BYTES)
        try:
            return read_object(content)
        except InvalidJose as error:
            raise client_metadata.UnusableMetadata("The metadata must be a JSON object") from error

    def _registration_uri(self, client: Client) -> str:
        return f"{self._issuer}{token_issuing.REGISTRATION_PATH}/{client.client_id}"


def _authorization(request: Request) -> str | None:
    fields = request.fields.authorization
    if len(fields) > 1:
        raise errors.BadRequest("Send only one Authorization header")
    return fields[0].decode("latin-1") if fields else None


@dataclass(frozen=True, slots=True)
class UserinfoEndpoint:
    """Verifies an access token and returns the claims about its person."""

    issuer: str
    status: TokenStatus
    proofs: ProofVerifier
    resource_tokens: AccessTokenVerifier
    invalid_credentials: InvalidCredentialLimit

    @route(token_issuing.USERINFO_PATH, "GET", "POST", sharing=CorsPolicy.ANYONE)
    async def get(self, request: Request, _: Identity | None) -> Response:
        """``GET`` or ``POST``.

        Raises NotAuthenticated, AccessDenied, RateLimited, ServerTrouble.
        """
        credential = credentials.read_credential(
            request.fields.authorization, request.fields.proofs
        )
        if credential is None or isinstance(credential, credentials.OtherCredential):
            raise errors.NotAuthenticated
        try:
            issuer = await self._issuer_of(request, credential)
        except errors.NotAuthenticated as error:
            if not error.lacks_nonce:
                await self.invalid_credentials.count(request.client_address)
            raise
        answer = await self.status.userinfo(credential.token, issuer)
        if answer is None:
            raise errors.AccessDenied("The token does not give access to this endpoint")
        return oauth_json_response(OAuthAnswer(200, answer))

    async def _issuer_of(
        self,
        request: Request,
        credential: credentials.UnverifiedDpop | credentials.UnverifiedBearer,
    ) -> str | None:
        """Verify the credential, and return its issuer. Raises NotAuthenticated, Overloaded."""
        url = userinfo_url(self.issuer)
        claims = await self.status.identity_claims(credential.token)
        if claims is not None:
            await self._check_binding(request, credential, claims)
            return self.issuer
        if isinstance(credential, credentials.UnverifiedDpop):
            identity = await self.resource_tokens.verify_dpop(
                credential,
                method=request.method,
                url=url,
                client_address=address_key(request.client_address),
            )
        else:
            identity = await self.resource_tokens.verify_bearer(credential)
        return identity.issuer

    async def _check_binding(
        self,
        request: Request,
        credential: credentials.UnverifiedDpop | credentials.UnverifiedBearer,
        claims: CommonClaims,
    ) -> None:
        """Check that a token that is bound to a key comes with a proof of it, and that any other
        token comes without one (RFC 9449 section 7). Raises NotAuthenticated, Overloaded."""
        if isinstance(credential, credentials.UnverifiedBearer):
            if claims.thumbprint is not None:
                raise errors.NotAuthenticated(
                    "The token is bound to a key: send it as DPoP", invalid=True, scheme="Bearer"
                )
            return
        proven = ProofContext(request.method, userinfo_url(self.issuer), credential.token)
        try:
            proof = self.proofs.check(credential.proof, proven)
            if not hmac.compare_digest(proof.thumbprint, claims.thumbprint or ""):
                raise InvalidProof("The token is bound to another key")
            await self.proofs.use(proof)
        except InvalidProof as refusal:
            raise errors.NotAuthenticated(
                str(refusal), invalid=True, scheme="DPoP", error=refusal.error
            ) from refusal
