"""One costly operation at a time for each agent: of a tree, for example.

An operation on ten thousand resources takes tens of megabytes and seconds of work. Whoever sends
many of them at once waits for their own, and nobody else's requests wait for theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from podstead.core.identity import Identity
from podstead.core.requester import requester


class _Turn(msgspec.Struct, eq=False):
    free: asyncio.Semaphore
    waiting: int = 0


class AgentTurns:
    """The operations of one worker, by agent, or by network for those without credentials."""

    def __init__(self, *, at_once: int = 1) -> None:
        """``at_once`` operations of one agent run at once."""
        self._at_once = at_once
        self._turns: dict[str, _Turn] = {}

    @asynccontextmanager
    async def of(self, agent: Identity | None) -> AsyncIterator[None]:
        """Wait for the agent's turn, which lasts until the context is left."""
        async with self.by(requester() if agent is None else agent.iri):
            yield

    @asynccontextmanager
    async def by(self, key: str) -> AsyncIterator[None]:
        """Wait for the turn of whoever has the key."""
        turn = self._turns.setdefault(key, _Turn(asyncio.Semaphore(self._at_once)))
        turn.waiting += 1
        try:
            async with turn.free:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[key]
