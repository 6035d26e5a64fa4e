"""Limits how often a client may cause look-ups of unknown WebIDs and issuers (A-111, A-191).

Look-ups are counted for each client address, issuers and WebIDs separately. A name that any worker
has found before is looked up again without being counted, so a client that names unknown ones does
not shut out others at its address. A failed look-up of the name ends that.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from math import ceil
from typing import Final, Protocol

from podstead.core.caches import ExpiringCache
from podstead.core.clock import Clock
from podstead.core.errors import RemoteUnavailable
from podstead.outbound.errors import Congested
from podstead.storage.protocol import RateCounters, ReplayCache

LOOKUPS_PER_MINUTE: Final = 30
KNOWN_S: Final = 6 * 3600
"""How long all workers know a name that one of them has found."""
STALE_S: Final = 15 * 60
"""How long an expired WebID document stays in use while limits of this server prevent the
look-up."""
FAILED_S: Final = 3600
"""How long look-ups of a known name count after one has failed, unless it is found again."""
MAX_FAILED: Final = 4096


class TooManyLookups(RemoteUnavailable):
    """The client has caused too many look-ups recently."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("Too many WebIDs or issuers that are not known here: try again later")
        self.retry_after_s = retry_after_s


OWN_LIMITS: Final = (TooManyLookups, Congested)
"""Limits of this server prevented a look-up: this says nothing about the other server."""


class Lookup(Enum):
    """What is looked up; each kind has a limit of its own."""

    ISSUER = "issuer"
    WEB_ID = "webid"


class SharedMemory(RateCounters, ReplayCache, Protocol):
    """The state about look-ups that all workers share."""


class Lookups:
    """Counts the look-ups of each client address, for all kinds of credentials together."""

    def __init__(self, shared: SharedMemory, clock: Clock) -> None:
        self._shared = shared
        self._clock = clock
        self._running: Counter[tuple[Lookup, str]] = Counter()
        self._failed = ExpiringCache[tuple[Lookup, str], bool](MAX_FAILED)

    @asynccontextmanager
    async def of(self, kind: Lookup, name: str, client_address: str | None) -> AsyncIterator[None]:
        """Count the look-up of a name, which is made within this context, unless it is known or
        being looked up at this moment. Without a client address, nothing is counted. Raises
        TooManyLookups."""
        looked_up = (kind, name)
        digest = hashlib.sha256(f"known {kind.value} {name}".encode()).digest()
        if client_address is not None and not self._running[looked_up]:
            failed = self._failed.get(looked_up, self._clock.now_ms())
            if failed or not await self._shared.is_used(digest, now_ms=self._clock.now_ms()):
                await self.take(kind.value, client_address)
        self._running[looked_up] += 1
        try:
            yield
        except OWN_LIMITS:
            raise
        except Exception:
            expires_at_ms = self._clock.now_ms() + FAILED_S * 1000
            self._failed.put(looked_up, value=True, expires_at_ms=expires_at_ms)
            raise
        finally:
            self._running[looked_up] -= 1
            if not self._running[looked_up]:
                del self._running[looked_up]
        self._failed.discard(looked_up)
        now_ms = self._clock.now_ms()
        await self._shared.use_once(digest, until_ms=now_ms + KNOWN_S * 1000, now_ms=now_ms)

    async def take(self, what: str, client_address: str) -> None:
        """Count one action of a client. Raises TooManyLookups if there were too many."""
        wait_s = await self._shared.take(
            f"lookup {what} {client_address}",
            capacity=LOOKUPS_PER_MINUTE,
            per_s=LOOKUPS_PER_MINUTE / 60,
            now_ms=self._clock.now_ms(),
        )
        if wait_s is not None:
            raise TooManyLookups(ceil(wait_s))
