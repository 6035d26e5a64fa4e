"""How often may a client cause look-ups of unknown WebIDs and issuers? (A-111, A-191)"""

from __future__ import annotations

from math import ceil
from typing import Final

from podstead.core.clock import Clock
from podstead.core.errors import RemoteUnavailable
from podstead.storage.protocol import RateCounters

LOOKUPS_PER_MINUTE: Final = 30


class TooManyLookups(RemoteUnavailable):
    """The client has caused too many look-ups recently."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("Too many WebIDs or issuers that are not known here: try again later")
        self.retry_after_s = retry_after_s


class LookupLimit:
    """Counts the look-ups for each client address, for all kinds of credentials together."""

    def __init__(self, counters: RateCounters, clock: Clock) -> None:
        self._counters = counters
        self._clock = clock

    async def take(self, client_address: str) -> None:
        """Count one look-up. Raises TooManyLookups if the limit has been reached."""
        wait_s = await self._counters.take(
            f"lookup {client_address}",
            capacity=LOOKUPS_PER_MINUTE,
            per_s=LOOKUPS_PER_MINUTE / 60,
            now_ms=self._clock.now_ms(),
        )
        if wait_s is not None:
            raise TooManyLookups(ceil(wait_s))
