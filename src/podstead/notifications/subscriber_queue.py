"""A bounded queue of one subscriber, between the deliveries and the code that sends.

Deliveries never wait. A queue that is full closes itself, because a subscriber that cannot keep up
would otherwise miss notifications without knowing it (N-31).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from podstead.core.identifiers import ResourcePath
from podstead.notifications.notification import Notification

CAPACITY: Final = 1000
"""The maximum number of messages that may wait for a slow client. When it is exceeded, the server
closes the connection: a client that misses messages on an open connection would not notice."""


class EndReason(Enum):
    """Why a watch or a queue ended."""

    REVOKED = "the topic may no longer be read"
    EXPIRED = "the credential is no longer valid"
    SLOW = "messages were not taken fast enough"
    STOPPING = "the server stops"
    CLOSED = "the listener left"


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """The watch of a topic has ended; other watches of the queue continue."""

    topic: ResourcePath
    ending: EndReason


QueueItem = Notification | WatchEnded | str
"""A string is another message to the subscriber, in its place among the notifications."""


class QueueClosed(Exception):
    """The queue is closed, and its items have been dropped."""

    def __init__(self, ending: EndReason) -> None:
        super().__init__(ending.value)
        self.ending = ending


class Producer(Protocol):
    """Puts items into a queue, and is closed with it."""

    def close(self) -> None: ...


class SubscriberQueue:
    """The items for one subscriber, of all its watches, in order."""

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        """The queue holds up to ``capacity`` items; one more closes it as SLOW."""
        self._capacity = capacity
        self._items: deque[QueueItem] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._sources: set[Producer] = set()
        self.ending: EndReason | None = None
        """Why the queue is closed; ``None`` while it is open."""
        self.hand_over: Callable[[QueueItem], bool] | None = None
        """Takes an item in place of the reader, if it returns True. It is called only while the
        reader waits and nothing is in the queue, so that items keep their order."""

    async def next(self) -> QueueItem:
        """Wait for the next item. For one reader at a time. Raises QueueClosed."""
        while self.ending is None:
            if self._items:
                return self._items.popleft()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        raise QueueClosed(self.ending)

    def put(self, item: QueueItem) -> None:
        """Add an item; does nothing if the queue is closed."""
        if self.ending is not None:
            return
        if self._is_awaited() and self.hand_over is not None and self.hand_over(item):
            return
        if len(self._items) >= self._capacity:
            self.close(EndReason.SLOW)
            return
        self._items.append(item)
        self._wake()

    def close(self, ending: EndReason = EndReason.CLOSED) -> None:
        """Drop all items and close every source of the queue. Idempotent."""
        if self.ending is not None:
            return
        self.ending = ending
        self._items.clear()
        for source in tuple(self._sources):
            source.close()
        self._wake()

    def attach(self, source: Producer) -> None:
        """Close ``source`` when the queue is closed, at once if it already is."""
        if self.ending is None:
            self._sources.add(source)
        else:
            source.close()

    def detach(self, source: Producer) -> None:
        """Undo :meth:`attach`. Idempotent."""
        self._sources.discard(source)

    def _is_awaited(self) -> bool:
        """Whether the reader has handled every item and waits for the next one."""
        return self._waiter is not None and not self._waiter.done()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
