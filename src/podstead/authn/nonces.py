"""Provides and verifies DPoP nonces, which show that proofs are recent (RFC 9449, 8 and 9, A-113).

A nonce is a MAC of the time slot in which the server provided it. All workers share the key, so
each of them can create and verify every nonce, and none is stored. Nonces do not prevent the replay
of a proof.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from podstead.core.clock import Clock
from podstead.jose.proof import unverified_nonce
from podstead.jose.tokens import InvalidJose

SLOT_S: Final = 300
"""How long the server provides one nonce. It is accepted for another slot."""
_PURPOSE: Final = b"podstead DPoP nonce"
_NONCE_BYTES: Final = 16


class Nonces:
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
