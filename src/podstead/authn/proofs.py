"""Verifies DPoP proofs and their first use (RFC 9449, A-101 to A-105, A-113)."""

from __future__ import annotations

from podstead.authn.nonces import Nonces
from podstead.core.clock import Clock
from podstead.jose.proof import DpopProof, ProvenRequest, check_proof
from podstead.jose.tokens import InvalidJose, PublicKeyCache
from podstead.storage.protocol import ReplayCache


class InvalidProof(InvalidJose):
    """The proof itself is not valid; ``error`` is the error code of RFC 9449."""

    error = "invalid_dpop_proof"


class NonceRequired(InvalidProof):
    """The proof is valid, but lacks a nonce of this server (RFC 9449 sections 8 and 9)."""

    error = "use_dpop_nonce"


class Proofs:
    """Verifies proofs, for resources and for the endpoints of the provider."""

    def __init__(
        self,
        *,
        used: ReplayCache,
        clock: Clock,
        require_ath: bool,
        refuse_replay: bool,
        nonces: Nonces | None = None,
    ) -> None:
        """With ``nonces``, a proof must contain one of them."""
        self._used = used
        self._clock = clock
        self._require_ath = require_ath
        self._refuse_replay = refuse_replay
        self._nonces = nonces
        self._keys = PublicKeyCache()

    def check(self, text: str, request: ProvenRequest) -> DpopProof:
        """Verify a proof in every respect except that it is new. Raises InvalidProof, and
        NonceRequired if only the nonce is missing."""
        try:
            proof = check_proof(
                text,
                request,
                now_s=self._clock.now_ms() // 1000,
                keys=self._keys,
                # Without an access token, the proof has none to refer to.
                require_ath=self._require_ath and request.access_token is not None,
            )
        except InvalidJose as error:
            raise InvalidProof(str(error)) from error
        if self._nonces is not None and not self._nonces.accepts(proof.nonce):
            raise NonceRequired("Send the DPoP proof with the nonce of the DPoP-Nonce header")
        return proof

    async def use(self, proof: DpopProof) -> None:
        """Record the use of a proof. Raises InvalidProof for a second use."""
        if not self._refuse_replay:
            return
        until_ms = proof.usable_until_s * 1000
        now_ms = self._clock.now_ms()
        if not await self._used.use_once(proof.use_key, until_ms=until_ms, now_ms=now_ms):
            raise InvalidProof("DPoP proof jti already used")
