"""Is this event signed, and new? The two checks that come last, for whatever an event is shown for.

The cheap checks come first, then the signature, and only what is signed is noted as used: nobody
can use up an event of somebody else by guessing at it.
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


class EventUses:
    """Lets every signed event count once, or for one sequence of git's requests, for all workers
    (A-147)."""

    def __init__(self, *, used: ReplayCache, clock: Clock, verify: VerifySignature) -> None:
        self._used = used
        self._clock = clock
        self._verify = verify

    async def use(
        self, event: NostrEvent, *, remembered_until_s: int, sequence: str | None = None
    ) -> None:
        """Use an event, which nobody can then do again before ``remembered_until_s`` (Unix time),
        but within the same ``sequence``.

        Raises InvalidEvent for one that is not signed or was used, Overloaded when no more can be
        noted, and StorageError.
        """
        key, message = bytes.fromhex(event.public_key), bytes.fromhex(event.event_id)
        if not await self._verify(key, message, event.signature):
            raise InvalidEvent("The event has no valid signature")
        if not await self._note(event, sequence, until_ms=remembered_until_s * 1000):
            raise InvalidEvent("The event has already been used")

    async def _note(self, event: NostrEvent, sequence: str | None, *, until_ms: int) -> bool:
        """Note the use; False for a second one that is not of the first one's sequence.

        An event is known by its signature: two of one second that say the same have one id, yet
        each was signed on its own, and nobody but the key's holder can make another signature of an
        event (BIP-340, strong unforgeability).
        """
        key = hashlib.sha256(b"nostr event" + event.signature).digest()
        now_ms = self._clock.now_ms()
        is_first = await self._used.use_once(key, until_ms=until_ms, now_ms=now_ms)
        if sequence is None:
            return is_first
        shared = hashlib.sha256(key + sequence.encode("utf-8")).digest()
        # Only the first use may note the sequence, or asking twice would be let through.
        if is_first:
            return await self._used.use_once(shared, until_ms=until_ms, now_ms=now_ms)
        return await self._used.is_used(shared, now_ms=now_ms)
