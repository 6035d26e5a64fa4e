"""What waits for one listener? A bounded queue between deliveries and whoever sends them on.

Deliveries never wait: a mailbox that is full closes itself, since a listener that cannot keep up
would otherwise miss something without knowing it (N-31).
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from podstead.core.identifiers import ResourcePath
from podstead.notifications.notification import Notification

CAPACITY: Final = 1000
"""The maximum number of messages that may wait for a slow client. When it is exceeded, the server
closes the connection: a client that misses messages on an open connection would not notice."""


class EndReason(Enum):
    """Why a watch or a mailbox ended."""

    REVOKED = "the topic may no longer be read"
    EXPIRED = "the credential is no longer valid"
    SLOW = "messages were not taken fast enough"
    STOPPING = "the server stops"
    CLOSED = "the listener left"


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """No more is heard of a topic, since ``ending``; other watches of the mailbox go on."""

    topic: ResourcePath
    ending: EndReason


QueueItem = Notification | WatchEnded | str
"""A text is something else that the listener is to be told, in its place among the notices."""


class QueueClosed(Exception):
    """Nothing comes any more, and what was waiting is gone."""

    def __init__(self, ending: EndReason) -> None:
        super().__init__(ending.value)
        self.ending = ending


class QueueSource(Protocol):
    """What fills a mailbox, and ends with it."""

    def close(self) -> None: ...


class SubscriberQueue:
    """The letters of one listener, of all that it watches, in their order."""

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        """``capacity`` letters may wait; one more closes the mailbox as SLOW."""
        self._capacity = capacity
        self._items: deque[QueueItem] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._sources: set[QueueSource] = set()
        self.ending: EndReason | None = None
        """Why the mailbox is closed; ``None`` while it is open."""

    async def next(self) -> QueueItem:
        """The next letter. For one reader at a time. Raises MailboxClosed."""
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
        """Leave a letter; without effect on a closed mailbox."""
        if self.ending is not None:
            return
        if len(self._items) >= self._capacity:
            self.close(EndReason.SLOW)
            return
        self._items.append(item)
        self._wake()

    def close(self, ending: EndReason = EndReason.CLOSED) -> None:
        """Drop what is waiting and close everything that fills the mailbox. Idempotent."""
        if self.ending is not None:
            return
        self.ending = ending
        self._items.clear()
        for source in tuple(self._sources):
            source.close()
        self._wake()

    def attach(self, source: QueueSource) -> None:
        """Have ``source`` closed with the mailbox, at once if it is closed already."""
        if self.ending is None:
            self._sources.add(source)
        else:
            source.close()

    def detach(self, source: QueueSource) -> None:
        """Forget a filler. Idempotent."""
        self._sources.discard(source)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
