"""How many fetches may be under way at once, in all and per host (A-191)?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podstead.outbound.errors import Congested


class Slots:
    """Counts running fetches. A slow host fills its own slots only, not everybody's."""

    def __init__(self, *, total: int, per_host: int) -> None:
        self._all = asyncio.Semaphore(total)
        self._per_host = per_host
        self._hosts: dict[str, asyncio.Semaphore] = {}
        self._interest: Counter[str] = Counter()

    @asynccontextmanager
    async def hold(self, host: str, deadline_s: float) -> AsyncIterator[None]:
        """Hold one slot of the host and one of all, waiting until ``deadline_s`` of loop time.

        Raises Congested.
        """
        semaphore = self._hosts.setdefault(host, asyncio.Semaphore(self._per_host))
        self._interest[host] += 1
        try:
            # The host's slot first: whoever waits for it holds none of the common ones.
            await _acquire(semaphore, deadline_s)
            try:
                await _acquire(self._all, deadline_s)
                try:
                    yield
                finally:
                    self._all.release()
            finally:
                semaphore.release()
        finally:
            self._forget_if_idle(host)

    def _forget_if_idle(self, host: str) -> None:
        self._interest[host] -= 1
        if self._interest[host] == 0:
            del self._interest[host], self._hosts[host]


async def _acquire(semaphore: asyncio.Semaphore, deadline_s: float) -> None:
    try:
        async with asyncio.timeout_at(deadline_s):
            await semaphore.acquire()
    except TimeoutError as error:
        raise Congested from error
