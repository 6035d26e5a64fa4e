"""A limited number of turns at once for each key, so that nobody waits for somebody else's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec


class _Waiters(msgspec.Struct, eq=False):
    free: asyncio.Semaphore
    count: int = 0


class KeyedSemaphores:
    """The turns of all keys. A key that nobody uses takes no memory."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._waiters: dict[str, _Waiters] = {}

    def count(self, key: str) -> int:
        """How many have a turn or wait for one."""
        waiters = self._waiters.get(key)
        return 0 if waiters is None else waiters.count

    @asynccontextmanager
    async def take(self, key: str) -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the context is left."""
        waiters = self._waiters.setdefault(key, _Waiters(asyncio.Semaphore(self._at_once)))
        waiters.count += 1
        try:
            async with waiters.free:
                yield
        finally:
            waiters.count -= 1
            if not waiters.count:
                del self._waiters[key]
