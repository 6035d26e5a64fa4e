"""Verifies the signature and the first use of an event, the last two checks of every signed event.

The caller makes the cheap checks first. The signature is verified before the use is recorded, so
nobody can use up an event without holding it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from podstead.core.clock import Clock
from podstead.nostr.errors import InvalidEvent
from podstead.nostr.event import NostrEvent
from podstead.storage.protocol import ReplayCache

VerifySignature = Callable[[bytes, bytes, bytes], Awaitable[bool]]
"""Whether a public key signed a message with a signature, all as bytes (BIP-340)."""


class EventVerifier:
    """Accepts every signed event once, or for one sequence of git requests, across all workers
    (A-147)."""

    def __init__(self, *, used: ReplayCache, clock: Clock, verify: VerifySignature) -> None:
        self._used = used
        self._clock = clock
        self._verify = verify

    async def use(
        self, event: NostrEvent, *, remembered_until_s: int, sequence: str | None = None
    ) -> None:
        """Record the use of an event. Until ``remembered_until_s`` (Unix time) it cannot be used
        again, except within the same ``sequence``.

        Raises InvalidEvent if it has no valid signature or has been used, Overloaded if no more
        uses can be recorded.
        """
        key, message = bytes.fromhex(event.public_key), bytes.fromhex(event.event_id)
        if not await self._verify(key, message, event.signature):
            raise InvalidEvent("The event has no valid signature")
        if not await self._note(event, sequence, until_ms=remembered_until_s * 1000):
            raise InvalidEvent("The event has already been used")

    async def _note(self, event: NostrEvent, sequence: str | None, *, until_ms: int) -> bool:
        """Record the use; False if it is a second one outside the sequence of the first.

        An event is identified by its signature. Two events of the same second with the same content
        have the same id, yet each was signed on its own, and only the holder of the key can create
        another signature of an event (BIP-340, strong unforgeability).
        """
        key = hashlib.sha256(b"nostr event" + event.signature).digest()
        now_ms = self._clock.now_ms()
        is_first = await self._used.use_once(key, until_ms=until_ms, now_ms=now_ms)
        if sequence is None:
            return is_first
        shared = hashlib.sha256(key + sequence.encode("utf-8")).digest()
        # Only the first use may record the sequence, or a second attempt would be accepted.
        if is_first:
            return await self._used.use_once(shared, until_ms=until_ms, now_ms=now_ms)
        return await self._used.is_used(shared, now_ms=now_ms)
