"""How many sockets and streams may be open, and how do they end when the server stops?

Each WebSocket and each streamed response takes memory and a connection, so the number of those that
one address or one agent has open is limited (N-31). Each worker counts its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from podstead.core.errors import RateLimited
from podstead.core.identity import Identity
from podstead.notifications.deliveries import CAPACITY, EndReason, SubscriberQueue
from podstead.web.limits import address_key

_RETRY_S = 30
MAX_PER_AGENT = 100
"""The maximum number of WebSockets that one authenticated agent may hold open at each worker."""


class OpenSockets:
    """The open sockets and streams of one worker."""

    def __init__(
        self, *, per_address: int, per_agent: int = MAX_PER_AGENT, queue_capacity: int = CAPACITY
    ) -> None:
        """``per_address`` and ``per_agent`` limit how many one address and one agent may have open;
        0 stands for no limit. Each gets a queue for ``queue_capacity`` messages."""
        self._per_address = per_address
        self._per_agent = per_agent
        self._capacity = queue_capacity
        self._open: Counter[Hashable] = Counter()
        self._queues: set[SubscriberQueue] = set()
        self._all_closed = asyncio.Event()
        self._stopping = False

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._queues)

    @contextmanager
    def admit(self, client_address: str, agent: Identity | None) -> Iterator[SubscriberQueue]:
        """The queue of a new socket, which is closed when the context ends. Raises RateLimited."""
        places: list[tuple[Hashable, int]] = [
            (("address", address_key(client_address)), self._per_address)
        ]
        if agent is not None:
            places.append((("agent", agent.iri), self._per_agent))
        if any(0 < most <= self._open[place] for place, most in places):
            raise RateLimited(retry_after_s=_RETRY_S)
        queue = SubscriberQueue(capacity=self._capacity)
        self._queues.add(queue)
        self._open.update(place for place, _ in places)
        if self._stopping:
            queue.close(EndReason.STOPPING)
        try:
            yield queue
        finally:
            queue.close()
            self._leave(queue, [place for place, _ in places])

    async def drain(self) -> None:
        """End every socket because the server is stopping, and wait until they are closed."""
        self._stopping = True
        for queue in tuple(self._queues):
            queue.close(EndReason.STOPPING)
        self._all_closed.clear()
        if self._queues:
            await self._all_closed.wait()

    def _leave(self, queue: SubscriberQueue, places: list[Hashable]) -> None:
        self._queues.discard(queue)
        for place in places:
            self._open[place] -= 1
            if self._open[place] == 0:
                del self._open[place]
        if not self._queues:
            self._all_closed.set()
