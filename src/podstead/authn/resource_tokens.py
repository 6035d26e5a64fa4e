"""Whose token is this, and may it be believed? Tokens of Solid-OIDC providers (A-76, A-100 ff.).

The cheap and local checks come first: no provider and no WebID is asked before the sender has
proven to hold the key of the proof. A token that was verified once is not verified again while its
issuer publishes the same key; that its WebID still trusts the issuer, that it is not revoked, and
that the proof is new, is looked at with every request.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Final, Protocol

from podstead.authn.claims import (
    ACCESS_TOKEN_TYPES,
    MAX_TOKEN_CHARACTERS,
    TokenClaims,
    read_claims,
    same_issuer,
)
from podstead.authn.credentials import UnverifiedBearer, UnverifiedDpop
from podstead.authn.issuers import IssuerKeys
from podstead.authn.lookups import LookupLimit
from podstead.authn.proofs import InvalidProof, Proofs
from podstead.authn.web_ids import WebIdIssuers
from podstead.core.bounded_cache import BoundedCache
from podstead.core.clock import Clock
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.jose.compact import CompactToken, claim_number, read_token, verify_signature
from podstead.jose.errors import InvalidJose
from podstead.jose.keys import PublicKey
from podstead.jose.proof import ProvenRequest

KEPT_CHARACTERS: Final = 16 * 1024 * 1024
"""Of the verified tokens whose claims are kept, some ten thousand of the usual size."""
LONGEST_KEPT: Final = 4096


class OwnProvider(Protocol):
    """The provider of this server, which is not asked over the network."""

    @property
    def issuer(self) -> str:
        """Its issuer identifier."""

    async def key(self, key_id: str | None) -> PublicKey | None:
        """The key of that id, if it is one that tokens still in use were signed with."""

    async def check(self, claims: TokenClaims) -> None:
        """Raises InvalidJose unless the token's account speaks for its WebID and has not revoked
        it."""

    def may_state_identity(self, claims: TokenClaims) -> bool:
        """Whether a valid token may change who can act as its WebID."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What the operator chose about tokens."""

    allow_loopback: bool = False
    """Take providers and WebIDs of plain http on this machine (A-190)."""
    allowed_issuers: frozenset[str] = frozenset()
    """If any, no other provider is believed (A-112); without a slash at their ends."""
    denied_issuers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Presented:
    """What a token says that says the right things; ``signer`` is who signed it, once known."""

    claims: TokenClaims
    key_id: str | None
    signer: PublicKey | None = None


class ResourceTokens:
    """Verifies tokens of our own provider and of any other."""

    def __init__(
        self,
        *,
        issuers: IssuerKeys,
        web_ids: WebIdIssuers,
        own: OwnProvider | None,
        proofs: Proofs,
        lookups: LookupLimit,
        rules: TokenRules,
        clock: Clock,
    ) -> None:
        """``own`` is ``None`` where this server is no provider."""
        self._issuers = issuers
        self._web_ids = web_ids
        self._own = own
        self._proofs = proofs
        self._lookups = lookups
        self._rules = rules
        self._clock = clock
        self._verified = BoundedCache[bytes, _Presented](KEPT_CHARACTERS)

    async def verify_dpop(
        self, credential: UnverifiedDpop, *, method: str, url: str, client_address: str
    ) -> Identity:
        """The identity of a token that is bound to the key of its proof. Raises NotAuthenticated,
        Overloaded when no more proofs can be noted, and RemoteUnavailable when the issuer or the
        WebID's document cannot be asked at present."""
        try:
            presented = self._read(credential.token)
            thumbprint = presented.claims.thumbprint
            if thumbprint is None:
                raise InvalidJose("The token is not bound to a key")
            request = ProvenRequest(method, url, credential.token)
            proof = self._proofs.check(credential.proof, request)
            if not hmac.compare_digest(proof.thumbprint, thumbprint):
                raise InvalidJose("The token is bound to another key")
            await self._believe(credential.token, presented, client_address)
            await self._proofs.use(proof)
        except InvalidJose as refusal:
            raise _refused(refusal, "DPoP") from refusal
        return self._identity(presented.claims, AuthenticationMethod.DPOP)

    async def verify_bearer(self, credential: UnverifiedBearer) -> Identity:
        """The identity of an access token of our own that is bound to no key (A-76).

        Raises NotAuthenticated, for every other token.
        """
        try:
            presented = self._read(credential.token)
            if presented.claims.thumbprint is not None:
                raise InvalidJose("The token is bound to a key: send it as DPoP")
            if self._own_of(presented.claims) is None:
                raise InvalidJose("Tokens of other servers must be bound to a key")
            await self._believe(credential.token, presented, client_address="")
        except InvalidJose as refusal:
            raise _refused(refusal, "Bearer") from refusal
        return self._identity(presented.claims, AuthenticationMethod.OIDC_BEARER)

    async def check_again(self, text: str, scheme: str, client_address: str) -> None:
        """See that a token that was verified is believed still, be it expired by now (A-76).

        Raises NotAuthenticated.
        """
        try:
            presented = self._verified.get(_digest(text)) or self._read_anew(text, in_time=True)
            await self._believe(text, presented, client_address)
        except InvalidJose as refusal:
            raise _refused(refusal, scheme) from refusal

    # --- the steps ----------------------------------------------------------------------------

    def _read(self, text: str) -> _Presented:
        """The token with its claims, read before or now."""
        known = self._verified.get(_digest(text))
        if known is not None:
            if known.claims.is_over(self._now_s()):
                raise InvalidJose("Access token expired or not valid yet")
            return known
        return self._read_anew(text)

    def _read_anew(self, text: str, *, in_time: bool = False) -> _Presented:
        """``in_time`` tells that the token came in time; it is judged as of when it ends."""
        token = read_token(text, max_characters=MAX_TOKEN_CHARACTERS)
        rules = self._rules
        ends_s = claim_number(token.claims, "exp") if in_time else None
        now_s = self._now_s() if ends_s is None else int(ends_s)
        claims = read_claims(token, now_s=now_s, allow_loopback=rules.allow_loopback)
        issuer = claims.issuer.removesuffix("/")
        if issuer in rules.denied_issuers or (
            rules.allowed_issuers
            and issuer not in rules.allowed_issuers
            and self._own_of(claims) is None
        ):
            raise InvalidJose("The token's issuer is not accepted")
        # Our own provider types every access token (RFC 9068 section 4); others may not.
        if self._own_of(claims) is not None and token.header.get("typ") not in ACCESS_TOKEN_TYPES:
            raise InvalidJose("This is not an access token")
        return _Presented(claims, token.key_id)

    async def _believe(self, text: str, presented: _Presented, client_address: str) -> None:
        """See that the issuer signed the token, and that it may speak for the WebID now."""
        claims = presented.claims
        own = self._own_of(claims)
        if own is None and not (
            self._issuers.knows(claims.issuer) and self._web_ids.knows(claims.web_id, claims.issuer)
        ):
            await self._lookups.take(client_address)
        if presented.signer is None or not await self._still_signs(
            own, presented, presented.signer
        ):
            await self._verify(text, presented, own)
        if own is not None:
            await own.check(claims)
        elif not await self._web_ids.trusts(claims.web_id, claims.issuer):
            raise InvalidJose("The WebID does not name the token's issuer")

    async def _still_signs(
        self, own: OwnProvider | None, presented: _Presented, signer: PublicKey
    ) -> bool:
        if own is None:
            return await self._issuers.publishes(presented.claims.issuer, signer)
        key = await own.key(presented.key_id)
        return key is not None and key.thumbprint == signer.thumbprint

    async def _verify(self, text: str, presented: _Presented, own: OwnProvider | None) -> None:
        token = read_token(text, max_characters=MAX_TOKEN_CHARACTERS)
        if own is None:
            candidates = await self._issuers.candidates(token, presented.claims.issuer)
        else:
            key = await own.key(token.key_id)
            candidates = () if key is None else (key,)
        signer = _signer(token, candidates)
        if len(text) <= LONGEST_KEPT:
            self._verified.put(_digest(text), replace(presented, signer=signer), weight=len(text))

    def _identity(self, claims: TokenClaims, method: AuthenticationMethod) -> Identity:
        """Other providers issue tokens to applications, and what the person allowed them is not
        known here: only a token of our own may state identity."""
        own = self._own_of(claims)
        return Identity(
            iri=claims.web_id,
            method=method,
            token_id=claims.token_id,
            expires_at_s=claims.expires_s,
            issuer=claims.issuer,
            client_id=claims.client_id,
            may_state_identity=own is not None and own.may_state_identity(claims),
        )

    def _own_of(self, claims: TokenClaims) -> OwnProvider | None:
        """Our own provider, if the token names it as its issuer."""
        own = self._own
        return own if own is not None and same_issuer(claims.issuer, own.issuer) else None

    def _now_s(self) -> int:
        return self._clock.now_ms() // 1000


def _signer(token: CompactToken, candidates: tuple[PublicKey, ...]) -> PublicKey:
    for key in candidates:
        try:
            verify_signature(token, key)
        except InvalidJose:
            continue
        return key
    raise InvalidJose("Invalid token")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("ascii")).digest()


def _refused(refusal: InvalidJose, scheme: str) -> NotAuthenticated:
    error = refusal.error if isinstance(refusal, InvalidProof) else "invalid_token"
    return NotAuthenticated(str(refusal), invalid=True, scheme=scheme, error=error)
