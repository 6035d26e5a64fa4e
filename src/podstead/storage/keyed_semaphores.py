"""A limited number of turns at once for each key, so that nobody waits for somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec


class _Line(msgspec.Struct, eq=False):
    free: asyncio.Semaphore
    count: int = 0


class KeyedSemaphores:
    """The turns of all keys. A key that nobody uses takes no memory."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lines: dict[str, _Line] = {}

    def count(self, key: str) -> int:
        """How many have a turn or wait for one."""
        line = self._lines.get(key)
        return 0 if line is None else line.count

    @asynccontextmanager
    async def take(self, key: str) -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the context is left."""
        line = self._lines.setdefault(key, _Line(asyncio.Semaphore(self._at_once)))
        line.count += 1
        try:
            async with line.free:
                yield
        finally:
            line.count -= 1
            if not line.count:
                del self._lines[key]
