"""How much of a body has arrived, for whoever stores it meanwhile."""

from __future__ import annotations

import asyncio


class Arrival:
    """The progress of one body. One task waits for it."""

    def __init__(self) -> None:
        self.was_complete = False
        """Whether the body was complete when the last wait ended."""
        self._bytes = 0
        self._is_complete = False
        self._changed = asyncio.Event()

    def advance(self, size_bytes: int) -> None:
        """So many bytes can be read by now."""
        self._bytes = size_bytes
        self._changed.set()

    def complete(self) -> None:
        """There will be no more, and all of them are wanted."""
        self._is_complete = True
        self._changed.set()

    async def wait(self, size_bytes: int) -> int:
        """Wait until so many bytes have arrived or the body is complete, and return how many of
        them there are."""
        while self._bytes < size_bytes and not self._is_complete:
            self._changed.clear()
            await self._changed.wait()
        self.was_complete = self._is_complete
        return min(self._bytes, size_bytes)
