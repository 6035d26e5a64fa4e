"""How often may an address send requests that need a signature? A limit per minute (A-181)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.clock import Clock
from podstead.storage.protocol import RateCounters
from podstead.web.limits import address_key, take
from podstead.web.pages.request import PageRequest

NOSTR_REQUESTS_PER_MINUTE: Final = 30
"""The maximum number of requests to link a Nostr key or to sign in with one that an address may
send in a minute. Each of the two operations takes two requests."""


@dataclass(frozen=True, slots=True)
class RequestLimit:
    """Counts the requests of an address for one purpose; a limit of 0 is off."""

    kind: str
    counters: RateCounters
    clock: Clock
    per_minute: int

    async def count(self, page: PageRequest) -> None:
        """Count one request. Raises RateLimited."""
        await take(
            self.counters,
            f"{self.kind}:{address_key(page.request.client_address)}",
            capacity=self.per_minute,
            period_s=60,
            clock=self.clock,
        )
