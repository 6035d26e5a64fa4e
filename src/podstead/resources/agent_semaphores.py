"""Limits each agent to one costly operation at a time, such as one on a tree.

An operation on ten thousand resources takes tens of megabytes and seconds of work. An agent that
sends many at once waits for its own operations and delays nobody else's. Only some may wait; the
rest are refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from podstead.core.errors import RateLimited
from podstead.core.identity import Identity
from podstead.core.request_context import limit_key
from podstead.storage.keyed_semaphores import KeyedSemaphores

MAX_WAITING: Final = 32
"""The operations of one agent that may run or wait."""
_RETRY_AFTER_S: Final = 5


class AgentSemaphores:
    """The operations of one worker, by agent, or by network for those without credentials."""

    def __init__(self, *, base_url: str = "", at_once: int = 1) -> None:
        """``at_once`` operations of one agent run at once. With a ``base_url``, agents of other
        servers share the limit of their network."""
        self._base_url = base_url
        self._turns = KeyedSemaphores(at_once)

    @asynccontextmanager
    async def of(self, agent: Identity | None) -> AsyncIterator[None]:
        """Wait for the agent's turn, which lasts until the context is left. Raises RateLimited."""
        async with self.by(limit_key(agent, base_url=self._base_url)):
            yield

    @asynccontextmanager
    async def by(self, key: str) -> AsyncIterator[None]:
        """Wait for a turn under the key. Raises RateLimited if too many are waiting under it."""
        if self._turns.count(key) >= MAX_WAITING:
            raise RateLimited(retry_after_s=_RETRY_AFTER_S)
        async with self._turns.take(key):
            yield
