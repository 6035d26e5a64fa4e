"""Was a DPoP proof made lately, and not long before it is used? Nonces that this server gives out
(RFC 9449 sections 8 and 9, A-113).

A nonce says in which slot of time it was given, in a way that nobody else can: every worker makes
and knows the same ones from a key that they share, and none is stored. That a proof is used once
only is not their matter.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from podstead.core.clock import Clock
from podstead.jose.errors import InvalidJose
from podstead.jose.proof import unverified_nonce

SLOT_S: Final = 300
"""How long one nonce is given out; it is taken for as long again."""
_PURPOSE: Final = b"podstead DPoP nonce"
_NONCE_BYTES: Final = 16


class Nonces:
    """Gives nonces out, and knows them again."""

    def __init__(self, *, secret: bytes, clock: Clock) -> None:
        """``secret`` is one of all workers; it may serve other ends as well."""
        self._key = hmac.digest(secret, _PURPOSE, sha256)
        self._clock = clock

    def current(self) -> str:
        """The nonce of now."""
        return self._of(self._slot())

    def accepts(self, nonce: str | None) -> bool:
        """Whether it was given out in this slot or the one before."""
        if nonce is None or not nonce.isascii():
            return False
        slot = self._slot()
        # Both are compared, so that the time taken does not tell which of them it was.
        matches = [hmac.compare_digest(self._of(each), nonce) for each in (slot, slot - 1)]
        return any(matches)

    def to_give(self, proofs: Sequence[bytes]) -> str | None:
        """The nonce that the sender of these proofs (DPoP fields) should use from now on, ``None``
        if it has it already, or sends no proof.

        What the proofs say is not verified: a nonce of now is no secret.
        """
        current = self.current()
        for proof in proofs:
            try:
                nonce = unverified_nonce(proof.strip(b" \t").decode("latin-1"))
            except InvalidJose:
                nonce = None
            if nonce != current:
                return current
        return None

    def _slot(self) -> int:
        return self._clock.now_ms() // 1000 // SLOT_S

    def _of(self, slot: int) -> str:
        digest = hmac.digest(self._key, slot.to_bytes(8, signed=True), sha256)[:_NONCE_BYTES]
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
