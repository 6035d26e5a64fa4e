"""How often may an address make us ask other servers about strangers? (A-111, A-191)"""

from __future__ import annotations

from typing import Final

from podstead.core.clock import Clock
from podstead.storage.protocol import RateCounters

LOOKUPS_PER_MINUTE: Final = 30


class Lookups:
    """Counts the look-ups for each address, whatever kind of credential they are for."""

    def __init__(self, counters: RateCounters, clock: Clock) -> None:
        self._counters = counters
        self._clock = clock

    async def take(self, client_address: str) -> bool:
        """Take one look-up; whether there was one left."""
        wait_s = await self._counters.take(
            f"lookup {client_address}",
            capacity=LOOKUPS_PER_MINUTE,
            per_s=LOOKUPS_PER_MINUTE / 60,
            now_ms=self._clock.now_ms(),
        )
        return wait_s is None
