"""Issues tokens, and describes the provider to clients and in profiles."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from podstead.authn.claims import AUDIENCE, CommonClaims, TokenClaims, same_issuer
from podstead.authn.web_ids import UNLIMITED, ProfileSources, UnusableDocument, WebIdDocuments
from podstead.core import base64url, identity, media_types, vocab
from podstead.core.clock import Clock, Randomness
from podstead.idp import accounts, client_metadata, records
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.keys import ProviderKeys, ProviderKeySet
from podstead.idp.oauth.authorization import PROMPTS, RESPONSE_MODES
from podstead.idp.oauth.token import Subject, TokenSet
from podstead.jose import tokens
from podstead.rdf.graph import Graph, Iri
from podstead.storage import protocol, record_store

# Describes the provider: OpenID Connect Discovery and RFC 8414 (A-41).

AUTHORIZATION_PATH: Final = "/idp/auth"
TOKEN_PATH: Final = "/idp/token"  # noqa: S105 - an address
REGISTRATION_PATH: Final = "/idp/reg"
USERINFO_PATH: Final = "/idp/me"
INTROSPECTION_PATH: Final = "/idp/token/introspection"
REVOCATION_PATH: Final = "/idp/token/revocation"
END_SESSION_PATH: Final = "/idp/session/end"
JWKS_PATH: Final = "/.well-known/jwks.json"
OPENID_PATH: Final = "/.well-known/openid-configuration"
OAUTH_PATH: Final = "/.well-known/oauth-authorization-server"


def userinfo_url(issuer: str) -> str:
    """The userinfo endpoint. It is also the audience of tokens that are valid only there."""
    return issuer + USERINFO_PATH


def provider_description(
    issuer: str, *, registration_open: bool, further: Mapping[str, object] = MappingProxyType({})
) -> tokens.Json:
    """The discovery document of the provider ``issuer``; ``registration_open`` if people may create
    accounts, and ``further`` are members of features."""
    prompts = PROMPTS - {"none"} if registration_open else PROMPTS - {"none", "create"}
    return {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZATION_PATH,
        "token_endpoint": issuer + TOKEN_PATH,
        "jwks_uri": issuer + JWKS_PATH,
        "registration_endpoint": issuer + REGISTRATION_PATH,
        "userinfo_endpoint": userinfo_url(issuer),
        "introspection_endpoint": issuer + INTROSPECTION_PATH,
        "revocation_endpoint": issuer + REVOCATION_PATH,
        "end_session_endpoint": issuer + END_SESSION_PATH,
        "scopes_supported": list(client_metadata.SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": list(RESPONSE_MODES),
        "grant_types_supported": list(client_metadata.GRANT_TYPES),
        "subject_types_supported": ["public"],
        "claims_supported": [
            "sub",
            "webid",
            "iss",
            "aud",
            "azp",
            "exp",
            "iat",
            "auth_time",
            "amr",
            "name",
            "email",
            "email_verified",
        ],
        "id_token_signing_alg_values_supported": list(client_metadata.IDENTITY_ALGORITHMS),
        "token_endpoint_auth_methods_supported": list(client_metadata.AUTH_METHODS),
        "introspection_endpoint_auth_methods_supported": list(client_metadata.AUTH_METHODS[:2]),
        "revocation_endpoint_auth_methods_supported": list(client_metadata.AUTH_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": list(tokens.SIGNATURE_ALGORITHMS),
        "authorization_response_iss_parameter_supported": True,
        "prompt_values_supported": ["none", *sorted(prompts)],
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "solid_oidc_supported": "https://solidproject.org/TR/solid-oidc",
        **further,
    }


# Creates access tokens, ID tokens and refresh tokens (A-65, A-66, A-70 to A-72).

ACCESS_TOKEN_S: Final = 3600
REFRESH_TOKEN_S: Final = 14 * 24 * 3600
GRANT_S: Final = 90 * 24 * 3600
"""How long a grant can be refreshed before the person has to sign in again."""

TOKEN_ID_BYTES: Final = 16
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Creates the tokens of one response, at one time, with the keys of that time."""

    issuer: str
    roster: ProviderKeySet
    randomness: Randomness
    now_s: int

    def mint(self, subject: Subject, *, client: records.Client, with_refresh: bool) -> TokenSet:
        """The members of a token response, and the record of its refresh token."""
        access_token = self.access_token(subject)
        body: dict[str, object] = {
            "access_token": access_token,
            "token_type": "Bearer" if subject.jkt is None else "DPoP",
            "expires_in": ACCESS_TOKEN_S,
            "scope": " ".join(subject.scopes),
            **subject.members,
        }
        if "openid" in subject.scopes:
            body["id_token"] = self._id_token(subject, client, access_token)
        if not with_refresh or subject.grant is None:
            return TokenSet(body)
        secret = self.randomness.token_hex(SECRET_BYTES)
        body["refresh_token"] = secret
        expires_s = min(self.now_s + REFRESH_TOKEN_S, subject.grant.began_s + GRANT_S)
        record = records.REFRESH_TOKENS.put(
            record_store.secret_key(secret),
            records.RefreshToken(
                grant_id=subject.grant.grant_id,
                client_id=subject.client_id,
                scopes=subject.lasting_scopes or subject.scopes,
                # A client with a secret may change its key; a public one may not (A-66).
                jkt=subject.jkt if client.auth_method == "none" else None,
            ),
            owner=subject.account.account_id,
            expires_ms=expires_s * 1000,
        )
        return TokenSet(body, (record,))

    def access_token(self, subject: Subject) -> str:
        """A token for resource servers (A-70), or for the userinfo endpoint alone."""
        claims: dict[str, object] = {
            "iss": self.issuer,
            "sub": subject.account.account_id,
            **_access_of(subject, otherwise=userinfo_url(self.issuer)),
            "client_id": subject.client_id,
            "azp": subject.client_id,
            "scope": " ".join(subject.scopes),
            "iat": accounts.issue_time_s(subject.account, self.now_s),
            "exp": self.now_s + ACCESS_TOKEN_S,
            "jti": f"{token_source(subject)}.{self.randomness.token_hex(TOKEN_ID_BYTES)}",
        }
        return self.roster.signer("RS256").sign(_bound(claims, subject), media_type="at+jwt")

    def _id_token(self, subject: Subject, client: records.Client, access_token: str) -> str:
        """The ID token, which tells the client who signed in (A-71)."""
        account, grant = subject.account, subject.grant
        claims: dict[str, object] = {
            "iss": self.issuer,
            "sub": account.account_id,
            "aud": [subject.client_id],
            "azp": subject.client_id,
            "iat": accounts.issue_time_s(subject.account, self.now_s),
            "exp": self.now_s + ACCESS_TOKEN_S,
            "jti": f"{token_source(subject)}.{self.randomness.token_hex(TOKEN_ID_BYTES)}",
            "at_hash": _half_hash(access_token),
        }
        if _is_solid(subject):
            claims |= {"aud": [subject.client_id, AUDIENCE], "webid": subject.web_id}
        if grant is not None:
            claims |= {"auth_time": grant.authenticated_s, "sid": grant.session_id}
            if grant.amr:
                claims["amr"] = grant.amr
            if grant.nonce is not None:
                claims["nonce"] = grant.nonce
        claims |= personal_claims(account, subject.scopes)
        return self._id_key(client).sign(_bound(claims, subject), media_type="JWT")

    def _id_key(self, client: records.Client) -> tokens.SigningKeyPair:
        algorithm: tokens.SigningAlgorithm = (
            "ES256" if client.identity_algorithm == "ES256" else "RS256"
        )
        return self.roster.signer(algorithm)


def _is_solid(subject: Subject) -> bool:
    return client_metadata.speaks_for_web_id(subject.scopes, bound=subject.jkt is not None)


def _access_of(subject: Subject, *, otherwise: str) -> dict[str, object]:
    """The audience of an access token, and its WebID unless the token only says who signed in."""
    if not _is_solid(subject):
        return {"aud": otherwise}
    return {"aud": AUDIENCE, "webid": subject.web_id}


def token_source(subject: Subject) -> str:
    """The grant or credentials that a token was issued for and whose validity it shares, as the
    first part of its ``jti``."""
    if subject.grant is not None:
        return f"g-{subject.grant.grant_id}"
    if subject.credential_id is not None:
        return f"c-{subject.credential_id}"
    return "d"


def personal_claims(account: records.Account, scopes: Sequence[str]) -> dict[str, object]:
    """The claims about a person that the scopes request (A-72)."""
    claims: dict[str, object] = {}
    if "profile" in scopes:
        claims["name"] = account.pod
    if "email" in scopes and account.email is not None:
        claims |= {"email": account.email, "email_verified": account.email_verified_s > 0}
    return claims


def _bound(claims: dict[str, object], subject: Subject) -> dict[str, object]:
    return claims if subject.jkt is None else {**claims, "cnf": {"jkt": subject.jkt}}


def _half_hash(access_token: str) -> str:
    """OpenID Connect Core section 3.1.3.6, for SHA-256, which both algorithms use."""
    half = hashlib.sha256(access_token.encode("ascii")).digest()[:16]
    return base64url.encoded(half)


# Checks whether the profile of an account names this provider, and restores the statement (A-109).
#
# A provider speaks for a WebID because the WebID document names it (Solid-OIDC section 6.1). This
# provider is no exception: if an owner removes the statement from their profile, or names another
# provider instead, no token of this provider is accepted for the WebID. Signing in still leads to
# the account page, which offers to restore the statement.

_WEIGHT: Final = 1


class ProfilePatcher(Protocol):
    """Changes profiles on behalf of their owners."""

    async def patch(self, web_id: str, patch: str, media_type: str) -> None:
        """Raises RequestRefused, ServerTrouble."""


class ProfileIssuer:
    """Knows whether profiles name this provider.

    The result is cached for each version of a profile, so a request with a token reads no more than
    the version. A profile of any length is read, since an application may make one long; the limits
    on stored documents are sufficient.
    """

    def __init__(self, issuer: str, sources: ProfileSources) -> None:
        self.issuer = issuer
        self._documents = WebIdDocuments[bool](
            sources, extract=self._is_named, weigh=lambda _: _WEIGHT, limits=UNLIMITED
        )

    async def is_named_by(self, web_id: str) -> bool:
        """Whether the WebID document of a WebID of this server names the provider now. Raises
        UnusableDocument if it cannot be read."""
        return await self._documents.stored(web_id) or False

    def _is_named(self, graph: Graph, web_id: str) -> bool:
        named = graph.objects(Iri(web_id), Iri(vocab.SOLID_OIDC_ISSUER))
        return any(isinstance(each, Iri) and same_issuer(each.value, self.issuer) for each in named)


class IssuerRestoration:
    """Adds this provider to profiles again."""

    def __init__(self, *, issuer: str, profiles: ProfilePatcher, audit: Audit) -> None:
        self._issuer = issuer
        self._profiles = profiles
        self._audit = audit

    async def restore(self, account: records.Account) -> None:
        """Add the provider to the profile of an account, besides other providers that it names.

        Raises RequestRefused if the owner may not change the profile, ServerTrouble.
        """
        statement = f"<{account.web_id}> <{vocab.SOLID_OIDC_ISSUER}> <{self._issuer}>"
        await self._profiles.patch(
            account.web_id, f"INSERT DATA {{ {statement} }}", media_types.SPARQL_UPDATE
        )
        self._audit.note(AuditEvent.ISSUER_RESTORED, account_id=account.account_id)


# Checks for the resource server whether tokens of this provider are still valid (A-76, A-109).
#
# The accounts decide about the WebIDs of this server. A token is valid for a WebID while its
# account has that WebID and is not disabled, neither the token nor the grant or the credentials
# that it was issued for have been revoked, and its client is still registered.

_NOT_NAMED: Final = (
    "The profile of the WebID no longer states this server as its identity provider; the owner can "
    "restore the statement on the account page"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTokens:
    """Implements OwnProvider of ``authn.resource_tokens``."""

    issuer: str
    store: protocol.EntryRegistry
    keys: ProviderKeys
    profile_issuer: ProfileIssuer
    clock: Clock

    async def key(self, key_id: str | None) -> tokens.PublicKey | None:
        known = (await self.keys.current()).verifier(key_id)
        if known is None:
            known = (await self.keys.current(look_again=True)).verifier(key_id)
        return known

    async def check(self, claims: TokenClaims) -> None:
        account = await self.check_identity(claims)
        if account.web_id != claims.web_id:
            raise tokens.InvalidJose("The token's account may not act for its WebID")
        try:
            named = await self.profile_issuer.is_named_by(account.web_id)
        except UnusableDocument as error:
            raise tokens.InvalidJose(str(error)) from error
        if not named:
            raise tokens.InvalidJose(_NOT_NAMED)

    async def check_identity(self, claims: CommonClaims) -> records.Account:
        """The account of a token, which may only say who signed in. Raises InvalidJose unless the
        token is still valid."""
        now_ms = self.clock.now_ms()
        account = await records.ACCOUNTS.read(self.store, claims.subject or "", now_ms=now_ms)
        if account is None or account.value.disabled:
            raise tokens.InvalidJose("The token's account may not act for its WebID")
        if claims.issued_s < account.value.valid_after_s:
            raise tokens.InvalidJose("The token is revoked")
        if claims.token_id is None or not await self._is_valid(claims.token_id, now_ms):
            raise tokens.InvalidJose("The token is revoked")
        return account.value

    def may_state_identity(self, claims: TokenClaims) -> bool:
        """A token issued for client credentials or a password belongs to the account itself. One
        issued for a grant belongs to an application, which needs the scope."""
        kind, _ = _source_of(claims.token_id or "")
        return kind in ("c", "d") or identity.IDENTITY_SCOPE in claims.scopes

    async def _is_valid(self, token_id: str, now_ms: int) -> bool:
        if await records.REVOKED_TOKENS.read(self.store, token_id, now_ms=now_ms) is not None:
            return False
        kind, source = _source_of(token_id)
        if kind == "g":
            grant = await records.GRANTS.read(self.store, source, now_ms=now_ms)
            if grant is None or grant.value.revoked:
                return False
            return await self._has_client(grant.value.client_id, now_ms)
        if kind == "c":
            return await records.CREDENTIALS.read(self.store, source, now_ms=now_ms) is not None
        return kind == "d"

    async def _has_client(self, client_id: str, now_ms: int) -> bool:
        """Whether the client is still registered. It may have removed itself (RFC 7592 section
        2.3), or have been removed to make room for others. A registration in use outlives its
        grants."""
        if client_metadata.is_document_url(client_id):
            return True
        return await records.CLIENTS.read(self.store, client_id, now_ms=now_ms) is not None


def _source_of(token_id: str) -> tuple[str, str]:
    """The kind and the id of what a token was issued for
    (:func:`podstead.idp.token_issuing.token_source`)."""
    kind, _, source = token_id.partition(".")[0].partition("-")
    return kind, source
