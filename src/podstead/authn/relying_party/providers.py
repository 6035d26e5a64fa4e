"""The providers at which people sign in, and the ID tokens that these return."""

import hmac
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from podstead.authn import claims as authn_claims
from podstead.authn.issuers import CONFIGURATION_PATH, IssuerKeys
from podstead.authn.resource_tokens import OwnProvider, TokenRules, signer_of
from podstead.authn.web_ids import LookupKind, LookupLimits, TooManyLookups, WebIdIssuers
from podstead.core.clock import Clock
from podstead.core.errors import OutboundError, RateLimited, RemoteUnavailable, RequestRefused
from podstead.jose import tokens
from podstead.outbound.foreign_documents import DocumentFetcher, Purpose


class SignInProblem(Enum):
    """The kinds of failure. The pages explain what to do about each."""

    NO_ADDRESS = "no-address"
    """The text is not the address of a provider or a WebID."""
    NO_PROVIDER = "no-provider"
    """Nothing at the address is a provider, or names one."""
    UNREACHABLE = "unreachable"
    """The provider cannot be reached at present."""
    UNUSABLE = "unusable"
    """The provider lacks something that is needed."""
    NOT_ACCEPTED = "not-accepted"
    """The operator of this server does not accept the provider."""
    EXPIRED = "expired"
    """The sign-in began too long ago, in another browser, or is over already."""
    DECLINED = "declined"
    """The person, or the provider, has not agreed."""
    INVALID = "invalid"
    """The provider's response is not valid, or from another provider."""
    NOT_TRUSTED = "not-trusted"
    """The document of the WebID does not name the provider."""


class ExternalSignInFailed(RequestRefused):
    """Nobody was signed in."""

    def __init__(self, problem: SignInProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem


# Finds the provider that a person means, and reads its description.
#
# A provider describes itself (OpenID Connect Discovery 1.0). Its description is checked before
# anybody is sent there: it must name itself, and offer the authorization code flow with PKCE (RFC
# 7636).

MAX_TRIED: Final = 3
"""How many of the providers that a WebID names are tried."""

PROOF_ALGORITHM: Final = "ES256"

_Failure: TypeAlias = ExternalSignInFailed | RateLimited


@dataclass(frozen=True, slots=True)
class ForeignProvider:
    """The part of a provider's description that matters for a sign-in."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None
    reads_client_documents: bool
    """It is a provider for Solid, which fetches Client ID Documents (Solid-OIDC section 5)."""
    names_itself: bool
    """Its authorization responses contain ``iss`` (RFC 9207)."""


class ProviderFinder(Protocol):
    """Finds the provider that a person means."""

    async def find(self, typed: str, client_address: str) -> ForeignProvider:
        """The provider at an address, or the one that the WebID at the address names. Raises
        ExternalSignInFailed, RateLimited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """Finds providers by their descriptions and by WebIDs."""

    documents: DocumentFetcher
    web_ids: WebIdIssuers
    lookups: LookupLimits
    rules: TokenRules

    async def find(self, typed: str, client_address: str) -> ForeignProvider:
        """The provider at an address, or the one that the WebID at the address names. Raises
        ExternalSignInFailed, RateLimited."""
        address = typed.strip()
        if "://" not in address:
            address = f"https://{address}"
        if not authn_claims.is_usable_address(address, allow_loopback=self.rules.allow_loopback):
            raise ExternalSignInFailed(SignInProblem.NO_ADDRESS)
        failure: _Failure = ExternalSignInFailed(SignInProblem.NO_PROVIDER)
        if not {"#", "?"} & set(address):
            try:
                return await self.describe(address, client_address)
            except (ExternalSignInFailed, RateLimited) as error:
                failure = error
        return await self._by_web_id(address, client_address, failure)

    async def _by_web_id(
        self, web_id: str, client_address: str, failure: _Failure
    ) -> ForeignProvider:
        try:
            issuers = await self.web_ids.named_by(web_id, client_address)
        except RemoteUnavailable as error:
            raise _unavailable(error) from error
        except tokens.InvalidJose:
            raise failure from None
        for issuer in sorted(issuers)[:MAX_TRIED]:
            try:
                return await self.describe(issuer, client_address)
            except (ExternalSignInFailed, RateLimited) as error:
                failure = error
        raise failure

    async def describe(self, issuer: str, client_address: str) -> ForeignProvider:
        """The provider with this issuer identifier. Raises ExternalSignInFailed, RateLimited."""
        name = issuer.removesuffix("/")
        rules = self.rules
        if name in rules.denied_issuers or (
            rules.allowed_issuers and name not in rules.allowed_issuers
        ):
            raise ExternalSignInFailed(SignInProblem.NOT_ACCEPTED)
        if not authn_claims.is_usable_address(issuer, allow_loopback=rules.allow_loopback):
            raise ExternalSignInFailed(SignInProblem.NO_PROVIDER)
        try:
            async with self.lookups.of(LookupKind.ISSUER, name, client_address):
                # Sign-ins at a known provider are limited as well, each provider for itself.
                await self.lookups.take(f"sign-in {name}", client_address)
                document = await self.documents.fetch(name + CONFIGURATION_PATH, Purpose.PROVIDER)
                description = tokens.read_object(document.content)
        except RemoteUnavailable as error:
            raise _unavailable(error) from error
        except (OutboundError, tokens.InvalidJose) as error:
            raise ExternalSignInFailed(SignInProblem.NO_PROVIDER) from error
        return read_provider(description, issuer, allow_loopback=rules.allow_loopback)


def _unavailable(error: RemoteUnavailable) -> _Failure:
    if isinstance(error, TooManyLookups):
        return RateLimited(retry_after_s=error.retry_after_s)
    return ExternalSignInFailed(SignInProblem.UNREACHABLE)


def read_provider(
    description: tokens.Json, issuer: str, *, allow_loopback: bool
) -> ForeignProvider:
    """The provider that a description states. Raises ExternalSignInFailed if it is that of another
    provider, or of one that cannot be used."""
    named = _text(description, "issuer")
    if named is None or not authn_claims.same_issuer(named, issuer):
        raise ExternalSignInFailed(SignInProblem.NO_PROVIDER)
    endpoints = {
        name: _text(description, name)
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint")
    }
    for address in endpoints.values():
        if address is not None and not authn_claims.is_usable_address(
            address, allow_loopback=allow_loopback
        ):
            raise ExternalSignInFailed(SignInProblem.UNUSABLE)
    authorization, token = endpoints["authorization_endpoint"], endpoints["token_endpoint"]
    if (
        authorization is None
        or "#" in authorization
        or token is None
        or not _offers(description, "response_types_supported", "code")
        or not _offers(description, "code_challenge_methods_supported", "S256")
        or not _offers(description, "dpop_signing_alg_values_supported", PROOF_ALGORITHM)
    ):
        raise ExternalSignInFailed(SignInProblem.UNUSABLE)
    names_itself = description.get("authorization_response_iss_parameter_supported") is True
    # A response that names no issuer could come from another provider, whose endpoint this one
    # claims as its own, and the code would be sent to this one.
    if not names_itself and any(
        each is not None and _origin(each) != _origin(named) for each in endpoints.values()
    ):
        raise ExternalSignInFailed(SignInProblem.UNUSABLE)
    scopes = description.get("scopes_supported")
    return ForeignProvider(
        issuer=named,
        authorization_endpoint=authorization,
        token_endpoint=token,
        registration_endpoint=endpoints["registration_endpoint"],
        reads_client_documents=isinstance(scopes, list) and "webid" in scopes,
        names_itself=names_itself,
    )


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _text(description: tokens.Json, name: str) -> str | None:
    value = description.get(name)
    return value if isinstance(value, str) else None


def _offers(description: tokens.Json, name: str, wanted: str) -> bool:
    """Whether a list contains a value; a provider that has no such list does not exclude it."""
    offered = description.get(name)
    return offered is None or (isinstance(offered, list) and wanted in offered)


# Verifies the ID tokens of other providers (OpenID Connect Core 3.1.3.7).
#
# The issuer's keys, the statement of the WebID's document and the operator's rules are those that
# decide about access tokens (:mod:`podstead.authn.resource_tokens`). Look-ups are not counted here,
# because the start of the sign-in was counted.


@dataclass(frozen=True, slots=True)
class ExpectedIdToken:
    """What the token of one sign-in must say."""

    issuer: str
    client_id: str
    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdTokenVerifier:
    """Verifies ID tokens that this server has asked for."""

    issuers: IssuerKeys
    web_ids: WebIdIssuers
    own: OwnProvider | None
    rules: TokenRules
    clock: Clock

    async def verify(self, text: str, expected: ExpectedIdToken) -> tuple[str, str]:
        """The WebID of the person, and the id of the session at the provider, empty if it names
        none. Raises ExternalSignInFailed."""
        try:
            token = tokens.read_token(text, max_characters=authn_claims.MAX_TOKEN_CHARACTERS)
            web_id = self._read(token, expected)
            signer_of(token, await self._candidates(token, expected.issuer))
        except RemoteUnavailable as error:
            raise ExternalSignInFailed(SignInProblem.UNREACHABLE) from error
        except tokens.InvalidJose as error:
            raise ExternalSignInFailed(SignInProblem.INVALID) from error
        if not await self.is_trusted(web_id, expected.issuer):
            raise ExternalSignInFailed(SignInProblem.NOT_TRUSTED)
        return web_id, tokens.claim_text(token.claims, "sid") or ""

    async def _candidates(
        self, token: tokens.CompactToken, issuer: str
    ) -> tuple[tokens.PublicKey, ...]:
        """The keys that may have signed the token; those of this server need no request."""
        own = self.own
        if own is None or not authn_claims.same_issuer(own.issuer, issuer):
            return await self.issuers.candidates(token, issuer, None)
        key = await own.key(token.key_id)
        return () if key is None else (key,)

    async def is_trusted(self, web_id: str, issuer: str) -> bool:
        """Whether the document of the WebID names the issuer now. Raises ExternalSignInFailed if it
        cannot be read at present."""
        try:
            return await self.web_ids.trusts(web_id, issuer, None)
        except RemoteUnavailable as error:
            raise ExternalSignInFailed(SignInProblem.UNREACHABLE) from error
        except tokens.InvalidJose:
            return False

    def _read(self, token: tokens.CompactToken, expected: ExpectedIdToken) -> str:
        """The WebID in the claims. Raises InvalidJose for a token that is not the expected one."""
        claims = token.claims
        audience = claims.get("aud")
        clients = audience if isinstance(audience, list) else [audience]
        authorized = tokens.claim_text(claims, "azp")
        if (
            not authn_claims.same_issuer(tokens.claim_text(claims, "iss") or "", expected.issuer)
            or token.header.get("typ") in authn_claims.ACCESS_TOKEN_TYPES
            or expected.client_id not in clients
            or authorized not in (None, expected.client_id)
            or (authorized is None and len(clients) > 1)
        ):
            raise tokens.InvalidJose("The token is not meant for this server")
        nonce = tokens.claim_text(claims, "nonce") or ""
        if not hmac.compare_digest(nonce.encode(errors="replace"), expected.nonce.encode()):
            raise tokens.InvalidJose("The token belongs to another sign-in")
        if not authn_claims.is_current(claims, now_s=self.clock.now_ms() // 1000):
            raise tokens.InvalidJose("The token has expired or is not valid yet")
        web_id = tokens.claim_text(claims, "webid" if "webid" in claims else "sub")
        if web_id is None or not authn_claims.is_usable_address(
            web_id, allow_loopback=self.rules.allow_loopback
        ):
            raise tokens.InvalidJose("The token has no valid WebID")
        return web_id
