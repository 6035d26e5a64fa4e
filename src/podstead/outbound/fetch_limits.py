"""Limits how many fetches run at a time, in total and for each share (A-191)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from podstead.outbound.errors import Congested


@dataclass(frozen=True, slots=True)
class Share:
    """Allows at most ``capacity`` fetches at a time with this key."""

    key: Hashable
    capacity: int


@dataclass(slots=True)
class _Used:
    """A share with tasks that hold its slots or wait for them."""

    free: asyncio.Semaphore
    interest: int = 0


class FetchLimits:
    """Limits the running fetches by any number of shares."""

    def __init__(self) -> None:
        self._used: dict[Hashable, _Used] = {}

    @asynccontextmanager
    async def hold(self, shares: Sequence[Share], deadline_s: float) -> AsyncIterator[None]:
        """Hold one slot of each share, waiting until ``deadline_s`` of loop time.

        The narrowest share comes first, so that a task that waits for it does not hold slots of the
        wider ones. Raises Congested.
        """
        async with AsyncExitStack() as held:
            for share in shares:
                await held.enter_async_context(self._hold_one(share, deadline_s))
            yield

    @asynccontextmanager
    async def _hold_one(self, share: Share, deadline_s: float) -> AsyncIterator[None]:
        used = self._used.get(share.key)
        if used is None:
            used = self._used[share.key] = _Used(asyncio.Semaphore(share.capacity))
        used.interest += 1
        try:
            await _acquire(used.free, deadline_s)
            try:
                yield
            finally:
                used.free.release()
        finally:
            used.interest -= 1
            if used.interest == 0:
                del self._used[share.key]


async def _acquire(semaphore: asyncio.Semaphore, deadline_s: float) -> None:
    try:
        async with asyncio.timeout_at(deadline_s):
            await semaphore.acquire()
    except TimeoutError as error:
        raise Congested from error
