"""Is a DPoP proof good, and is this its first use? (RFC 9449, A-101 to A-105, A-113)"""

from __future__ import annotations

from podstead.authn.nonces import Nonces
from podstead.core.clock import Clock
from podstead.jose.errors import InvalidJose
from podstead.jose.keys import PublicKeyCache
from podstead.jose.proof import DpopProof, ProvenRequest, check_proof
from podstead.storage.protocol import ReplayCache


class InvalidProof(InvalidJose):
    """The proof is not acceptable, whatever it comes with; ``error`` is RFC 9449's name for it."""

    error = "invalid_dpop_proof"


class NonceWanted(InvalidProof):
    """The proof is good but for a nonce of this server (RFC 9449 sections 8 and 9)."""

    error = "use_dpop_nonce"


class Proofs:
    """Checks proofs, for resources and for the provider's own endpoints."""

    def __init__(
        self,
        *,
        used: ReplayCache,
        clock: Clock,
        require_ath: bool,
        refuse_replay: bool,
        nonces: Nonces | None = None,
    ) -> None:
        """With ``nonces``, a proof must hold one of them."""
        self._used = used
        self._clock = clock
        self._require_ath = require_ath
        self._refuse_replay = refuse_replay
        self._nonces = nonces
        self._keys = PublicKeyCache()

    def check(self, text: str, request: ProvenRequest) -> DpopProof:
        """The proof, in every point but its being new. Raises InvalidProof, and NonceWanted if
        that is all that is wrong."""
        try:
            proof = check_proof(
                text,
                request,
                now_s=self._clock.now_ms() // 1000,
                keys=self._keys,
                # Where no access token is shown there is none to be named.
                require_ath=self._require_ath and request.access_token is not None,
            )
        except InvalidJose as error:
            raise InvalidProof(str(error)) from error
        if self._nonces is not None and not self._nonces.accepts(proof.nonce):
            raise NonceWanted("Send the DPoP proof with the nonce of the DPoP-Nonce header")
        return proof

    async def use(self, proof: DpopProof) -> None:
        """Note the proof's use. Raises InvalidProof for a second one, and Overloaded."""
        if not self._refuse_replay:
            return
        until_ms = proof.usable_until_s * 1000
        now_ms = self._clock.now_ms()
        if not await self._used.use_once(proof.use_key, until_ms=until_ms, now_ms=now_ms):
            raise InvalidProof("DPoP proof jti already used")
