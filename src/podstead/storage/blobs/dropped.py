"""Removing bodies as soon as nothing refers to them and nobody reads them any more.

A worker is told which bodies its commits have replaced or deleted. It removes them at once, and
tries again after a while those that are being read and all of them while a backup is made. Their
records stay until a sweep, which also removes what a process that was killed has left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import Final

from podstead.core.errors import Overloaded, StorageError
from podstead.storage.blobs.body_store import BodyStore
from podstead.storage.records import BlobId

logger = logging.getLogger("podstead.storage")

RETRY_S: Final = 1.0
"""How long after the last attempt a body that is being read is tried again."""

MAX_WAITING: Final = 10_000
"""How many bodies a worker remembers; the rest is left to the next sweep."""

_AT_ONCE: Final = 500

RemovalsAllowed = Callable[[], AbstractAsyncContextManager[bool]]
"""Whether bodies that nothing refers to may be removed, as long as the context lasts: a backup may
need them. Raises StorageError, Overloaded."""


class DroppedBodies:
    """The bodies that one worker has yet to remove."""

    def __init__(self, blobs: BodyStore, turn: RemovalsAllowed, *, delay_s: float) -> None:
        """``delay_s`` is how long a body stays for those who are just about to read it."""
        self._blobs = blobs
        self._turn = turn
        self._delay_s = delay_s
        self._waiting: dict[BlobId, float] = {}
        """The time of the event loop from which on each may be removed."""
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def add(self, blobs: Iterable[BlobId]) -> None:
        """Remove bodies that nothing refers to, soon and in the background."""
        from_s = asyncio.get_running_loop().time() + self._delay_s
        self._waiting.update((blob, from_s) for blob in blobs)
        while len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        if self._task is None:
            self._task = asyncio.create_task(self._remove_all(), name="podstead-dropped-bodies")

    async def remove_now(self) -> None:
        """Remove what can be removed. Raises StorageError, Overloaded."""
        async with self._lock:
            now_s = asyncio.get_running_loop().time()
            due = [blob for blob, from_s in self._waiting.items() if from_s <= now_s]
            for start in range(0, len(due), _AT_ONCE):
                async with self._turn() as is_allowed:
                    if not is_allowed:
                        return
                    for blob in await self._blobs.remove(islice(due, start, start + _AT_ONCE)):
                        self._waiting.pop(blob, None)

    async def close(self) -> None:
        """Leave the rest to a sweep."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _remove_all(self) -> None:
        try:
            await asyncio.sleep(self._delay_s)
            while True:
                await self.remove_now()
                if not self._waiting:
                    return
                await asyncio.sleep(RETRY_S)
        except (StorageError, Overloaded):
            logger.warning("Bodies could not be removed; the next sweep will do it", exc_info=True)
            self._waiting.clear()
        finally:
            self._task = None
