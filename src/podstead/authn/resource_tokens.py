"""Verifies the access tokens of Solid-OIDC providers (A-76, A-100 ff.).

The cheap and local checks come first: no provider and no WebID document is read before the sender
has proven possession of the key. The signature of a token is not verified again as long as its
issuer publishes the same key. Every request is checked for the rest: that the WebID still trusts
the issuer, that the token has not been revoked, and that the proof is new.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, Protocol

from podstead.authn import claims as authn_claims
from podstead.authn.credentials import UnverifiedBearer, UnverifiedDpop
from podstead.authn.issuers import IssuerKeys
from podstead.authn.web_ids import WebIdIssuers
from podstead.core import base64url
from podstead.core.caches import BoundedCache
from podstead.core.clock import Clock
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.jose import tokens
from podstead.jose.proof import DpopProof, ProofContext, check_proof, unverified_nonce
from podstead.storage.protocol import ReplayCache

# Provides and verifies DPoP nonces, which show that proofs are recent (RFC 9449, 8 and 9, A-113).
#
# A nonce is a MAC of the time slot in which the server provided it. All workers share the key, so
# each of them can create and verify every nonce, and none is stored. Nonces do not prevent the
# replay of a proof.

SLOT_S: Final = 300
"""How long the server provides one nonce. It is accepted for another slot."""
_PURPOSE: Final = b"podstead DPoP nonce"
_NONCE_BYTES: Final = 16


class DpopNonces:
    """Creates and verifies nonces."""

    def __init__(self, *, secret: bytes, clock: Clock) -> None:
        """All workers have the same ``secret``, which may have other uses too."""
        self._key = hmac.digest(secret, _PURPOSE, sha256)
        self._clock = clock

    def current(self) -> str:
        """The nonce of the current time slot."""
        return self._of(self._slot())

    def accepts(self, nonce: str | None) -> bool:
        """Whether it is the nonce of this time slot or of the one before."""
        if nonce is None or not nonce.isascii():
            return False
        slot = self._slot()
        # Both are compared, so that the time taken does not reveal which of them matched.
        matches = [hmac.compare_digest(self._of(each), nonce) for each in (slot, slot - 1)]
        return any(matches)

    def to_give(self, proofs: Sequence[bytes]) -> str | None:
        """The nonce that the sender of these proofs (DPoP fields) should use from now on; ``None``
        if it already uses the current one or sends no proof.

        The proofs are not verified, because the current nonce is not a secret.
        """
        current = self.current()
        for proof in proofs:
            try:
                nonce = unverified_nonce(proof.strip(b" \t").decode("latin-1"))
            except tokens.InvalidJose:
                nonce = None
            if nonce != current:
                return current
        return None

    def _slot(self) -> int:
        return self._clock.now_ms() // 1000 // SLOT_S

    def _of(self, slot: int) -> str:
        digest = hmac.digest(self._key, slot.to_bytes(8, signed=True), sha256)[:_NONCE_BYTES]
        return base64url.encoded(digest)


# Verifies DPoP proofs and their first use (RFC 9449, A-101 to ).


class InvalidProof(tokens.InvalidJose):
    """The proof itself is not valid; ``error`` is the error code of RFC 9449."""

    error = "invalid_dpop_proof"


class NonceRequired(InvalidProof):
    """The proof is valid, but lacks a nonce of this server (RFC 9449 sections 8 and 9)."""

    error = "use_dpop_nonce"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofVerifier:
    """Verifies proofs, for resources and for the endpoints of the provider. With ``nonces``, a
    proof must contain one of them."""

    used: ReplayCache
    clock: Clock
    require_ath: bool
    refuse_replay: bool
    nonces: DpopNonces | None = None

    def check(self, text: str, request: ProofContext) -> DpopProof:
        """Verify a proof in every respect except that it is new. Raises InvalidProof, and
        NonceRequired if only the nonce is missing."""
        try:
            proof = check_proof(
                text,
                request,
                now_s=self.clock.now_ms() // 1000,
                # Without an access token, the proof has none to refer to.
                require_ath=self.require_ath and request.access_token is not None,
            )
        except tokens.InvalidJose as error:
            raise InvalidProof(str(error)) from error
        if self.nonces is not None and not self.nonces.accepts(proof.nonce):
            raise NonceRequired("Send the DPoP proof with the nonce of the DPoP-Nonce header")
        return proof

    async def use(self, proof: DpopProof) -> None:
        """Record the use of a proof. Raises InvalidProof for a second use."""
        if not self.refuse_replay:
            return
        until_ms = proof.usable_until_s * 1000
        now_ms = self.clock.now_ms()
        if not await self.used.use_once(proof.use_key, until_ms=until_ms, now_ms=now_ms):
            raise InvalidProof("DPoP proof jti already used")


CACHE_CHARACTERS: Final = 16 * 1024 * 1024
"""The total size of the verified tokens in the cache, about ten thousand of the usual size."""
MAX_CACHED_CHARACTERS: Final = 4096


class OwnProvider(Protocol):
    """The provider of this server, which is not contacted over the network."""

    @property
    def issuer(self) -> str:
        """Its issuer identifier."""

    async def key(self, key_id: str | None) -> tokens.PublicKey | None:
        """The key with that id, if tokens that may still be in use were signed with it."""

    async def check(self, claims: authn_claims.TokenClaims) -> None:
        """Raises InvalidJose unless the token's account still has its WebID and has not revoked the
        token."""

    def may_state_identity(self, claims: authn_claims.TokenClaims) -> bool:
        """Whether a valid token may change who can act as its WebID."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What the operator has configured about tokens."""

    allow_loopback: bool = False
    """Accept providers and WebIDs with plain http on this machine (A-190)."""
    allowed_issuers: frozenset[str] = frozenset()
    """If not empty, no other provider is accepted (A-112); without a slash at the end."""
    denied_issuers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _ParsedToken:
    """The claims of a token that is meant for this server; ``signer`` is the key that signed it,
    once that has been verified."""

    claims: authn_claims.TokenClaims
    key_id: str | None
    signer: tokens.PublicKey | None = None


@dataclass(slots=True, kw_only=True)
class AccessTokenVerifier:
    """Verifies tokens of this server's provider and of others; ``own`` is ``None`` if this server
    is not a provider."""

    issuers: IssuerKeys
    web_ids: WebIdIssuers
    own: OwnProvider | None
    proofs: ProofVerifier
    rules: TokenRules
    clock: Clock
    _verified: BoundedCache[bytes, _ParsedToken] = field(
        default_factory=lambda: BoundedCache[bytes, _ParsedToken](CACHE_CHARACTERS), init=False
    )

    async def verify_dpop(
        self, credential: UnverifiedDpop, *, method: str, url: str, client_address: str
    ) -> Identity:
        """The identity of a token that is bound to the key of its proof. Raises NotAuthenticated,
        Overloaded if no more proofs can be recorded, and RemoteUnavailable if the issuer or the
        WebID document cannot be reached at present."""
        try:
            parsed = self._read(credential.token)
            thumbprint = parsed.claims.thumbprint
            if thumbprint is None:
                raise tokens.InvalidJose("The token is not bound to a key")
            request = ProofContext(method, url, credential.token)
            proof = self.proofs.check(credential.proof, request)
            if not hmac.compare_digest(proof.thumbprint, thumbprint):
                raise tokens.InvalidJose("The token is bound to another key")
            await self._check_trust(credential.token, parsed, client_address)
            await self.proofs.use(proof)
        except tokens.InvalidJose as refusal:
            raise _refused(refusal, "DPoP") from refusal
        return self._identity(parsed.claims, AuthenticationMethod.DPOP)

    async def verify_bearer(self, credential: UnverifiedBearer) -> Identity:
        """The identity of an access token of this server that is not bound to a key (A-76).

        Raises NotAuthenticated, also for every other token.
        """
        try:
            parsed = self._read(credential.token)
            if parsed.claims.thumbprint is not None:
                raise tokens.InvalidJose("The token is bound to a key: send it as DPoP")
            if self._own_of(parsed.claims) is None:
                raise tokens.InvalidJose("Tokens of other servers must be bound to a key")
            await self._check_trust(credential.token, parsed, client_address="")
        except tokens.InvalidJose as refusal:
            raise _refused(refusal, "Bearer") from refusal
        return self._identity(parsed.claims, AuthenticationMethod.OIDC_BEARER)

    async def check_again(self, text: str, scheme: str, client_address: str) -> None:
        """Check that a verified token is still trusted, even if it has expired meanwhile (A-76).

        Raises NotAuthenticated.
        """
        try:
            parsed = self._verified.get(_digest(text)) or self._parse(text, in_time=True)
            await self._check_trust(text, parsed, client_address)
        except tokens.InvalidJose as refusal:
            raise _refused(refusal, scheme) from refusal

    # --- the steps ----------------------------------------------------------------------------

    def _read(self, text: str) -> _ParsedToken:
        """The claims of the token, from the cache if it has been verified."""
        known = self._verified.get(_digest(text))
        if known is not None:
            if known.claims.is_over(self._now_s()):
                raise tokens.InvalidJose("Access token expired or not valid yet")
            return known
        return self._parse(text)

    def _parse(self, text: str, *, in_time: bool = False) -> _ParsedToken:
        """``in_time`` is for a token whose request came in time; it is read as of its expiry."""
        token = tokens.read_token(text, max_characters=authn_claims.MAX_TOKEN_CHARACTERS)
        rules = self.rules
        ends_s = tokens.claim_number(token.claims, "exp") if in_time else None
        now_s = self._now_s() if ends_s is None else int(ends_s)
        claims = authn_claims.read_claims(token, now_s=now_s, allow_loopback=rules.allow_loopback)
        issuer = claims.issuer.removesuffix("/")
        if issuer in rules.denied_issuers or (
            rules.allowed_issuers
            and issuer not in rules.allowed_issuers
            and self._own_of(claims) is None
        ):
            raise tokens.InvalidJose("The token's issuer is not accepted")
        # Our own provider sets the type of every access token (RFC 9068 section 4); others may not.
        if (
            self._own_of(claims) is not None
            and token.header.get("typ") not in authn_claims.ACCESS_TOKEN_TYPES
        ):
            raise tokens.InvalidJose("This is not an access token")
        return _ParsedToken(claims, token.key_id)

    async def _check_trust(self, text: str, parsed: _ParsedToken, client_address: str) -> None:
        """Check that the issuer signed the token and that the WebID trusts the issuer now."""
        claims = parsed.claims
        own = self._own_of(claims)
        asker: str | None = client_address
        if (
            own is None
            and not self.issuers.knows(claims.issuer)
            # A provider that somebody of this server has chosen is not unknown.
            and await self.web_ids.is_named_here(claims.web_id, claims.issuer)
        ):
            asker = None
        signer = parsed.signer
        if signer is None or not await self._is_still_published(own, parsed, signer, asker):
            await self._verify(text, parsed, own, asker)
        if own is not None:
            await own.check(claims)
        elif not await self.web_ids.trusts(claims.web_id, claims.issuer, client_address):
            raise tokens.InvalidJose("The WebID does not name the token's issuer")

    async def _is_still_published(
        self,
        own: OwnProvider | None,
        parsed: _ParsedToken,
        signer: tokens.PublicKey,
        asker: str | None,
    ) -> bool:
        if own is None:
            return await self.issuers.publishes(parsed.claims.issuer, signer, asker)
        key = await own.key(parsed.key_id)
        return key is not None and key.thumbprint == signer.thumbprint

    async def _verify(
        self, text: str, parsed: _ParsedToken, own: OwnProvider | None, asker: str | None
    ) -> None:
        token = tokens.read_token(text, max_characters=authn_claims.MAX_TOKEN_CHARACTERS)
        if own is None:
            candidates = await self.issuers.candidates(token, parsed.claims.issuer, asker)
        else:
            key = await own.key(token.key_id)
            candidates = () if key is None else (key,)
        signer = signer_of(token, candidates)
        if len(text) <= MAX_CACHED_CHARACTERS:
            self._verified.put(_digest(text), replace(parsed, signer=signer), weight=len(text))

    def _identity(self, claims: authn_claims.TokenClaims, method: AuthenticationMethod) -> Identity:
        """Other providers issue tokens to applications, and this server does not know what the
        person has allowed them. Only a token of its own may state identity."""
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

    def _own_of(self, claims: authn_claims.TokenClaims) -> OwnProvider | None:
        """The provider of this server, if the token names it as its issuer."""
        own = self.own
        return (
            own if own is not None and authn_claims.same_issuer(claims.issuer, own.issuer) else None
        )

    def _now_s(self) -> int:
        return self.clock.now_ms() // 1000


def signer_of(
    token: tokens.CompactToken, candidates: tuple[tokens.PublicKey, ...]
) -> tokens.PublicKey:
    """The key that made the signature of the token. Raises InvalidJose if none did."""
    for key in candidates:
        try:
            tokens.verify_signature(token, key)
        except tokens.InvalidJose:
            continue
        return key
    raise tokens.InvalidJose("Invalid token")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("ascii")).digest()


def _refused(refusal: tokens.InvalidJose, scheme: str) -> NotAuthenticated:
    error = refusal.error if isinstance(refusal, InvalidProof) else "invalid_token"
    return NotAuthenticated(str(refusal), invalid=True, scheme=scheme, error=error)
