"""Who writes a resource next? Writers of one resource queue within a process.

The commit alone decides who wins (its reliances are checked in the transaction); queueing only
spares writers of one resource from deciding again and again on states that are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podstead.core.identifiers import ResourcePath


class Turns:
    """One queue per resource that someone is writing."""

    def __init__(self) -> None:
        self._locks: dict[ResourcePath, asyncio.Lock] = {}
        self._writers: dict[ResourcePath, int] = {}

    @asynccontextmanager
    async def of(self, path: ResourcePath) -> AsyncIterator[bool]:
        """Wait for one's turn on the resource and hold it; tells whether others were before."""
        lock = self._locks.setdefault(path, asyncio.Lock())
        had_to_wait = lock.locked()
        self._writers[path] = self._writers.get(path, 0) + 1
        try:
            async with lock:
                yield had_to_wait
        finally:
            self._writers[path] -= 1
            if not self._writers[path]:
                del self._writers[path], self._locks[path]
