"""What a listener to the change log waits with, in both engines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

POLL_INTERVAL_S: Final = 1.0
"""How often a listener polls, which is also the maximum delay after a lost notification."""


class ChangeListener:
    """Implements ChangeSignal. A wake-up is kept until the next wait."""

    def __init__(self, remove: Callable[[ChangeListener], None]) -> None:
        self._remove = remove
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Make :meth:`wait` return."""
        self._woken.set()

    async def wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_INTERVAL_S):
                await self._woken.wait()
        self._woken.clear()

    def close(self) -> None:
        self._remove(self)
