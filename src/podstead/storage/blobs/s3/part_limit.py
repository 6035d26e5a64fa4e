"""Whose part is stored next? Parts are held in memory while they are, so few are at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from podstead.core.errors import Overloaded
from podstead.core.request_context import requester
from podstead.storage.keyed_semaphores import KeyedSemaphores

AT_ONCE: Final = 4
"""The parts that a worker holds in memory."""

OF_REQUESTER: Final = 2
"""Those of one network, so that others have a place whatever it sends."""

WAIT_S: Final = 30.0
"""How long a part waits for its turn."""


class PartLimit:
    """The turns of one worker. Each part waits in the line of its requester first."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)
        self._of_requesters = KeyedSemaphores(OF_REQUESTER)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the context is left. Raises Overloaded."""
        waiting = asyncio.timeout(WAIT_S)
        try:
            async with waiting, self._of_requesters.take(requester()), self._free:
                waiting.reschedule(None)
                yield
        except TimeoutError as error:
            if not waiting.expired():
                raise
            raise Overloaded("Too many large bodies are being stored; try again") from error
