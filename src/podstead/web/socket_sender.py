"""How do messages reach the client of one WebSocket? In their order, one outstanding at a time.

A message that finds its socket free is handed to the HTTP server at once, by whoever puts it into
the queue: with a thousand watchers of one document, a task that wakes up for each message would
cost more than the message. A message that comes while the previous one is outstanding waits in the
queue, so a client that reads slowly fills its own queue (which closes when it is full) and nothing
else. If a client takes nothing for ``SEND_TIMEOUT_S``, its queue is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from podstead.notifications.deliveries import EndReason, QueueItem, SubscriberQueue
from podstead.web.websocket import SocketClosed, WebSocket

SEND_TIMEOUT_S: Final = 30.0
"""How long a client may take nothing at all."""

Texts = Callable[[QueueItem], Sequence[str] | None]
"""The messages for an item of the queue; ``None`` if the reader of the queue has to handle it."""


class SocketSender:
    """Sends to one socket what its queue holds."""

    def __init__(self, socket: WebSocket, queue: SubscriberQueue) -> None:
        self.socket = socket
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._outstanding: asyncio.Future[None] | None = None
        self._sent_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def silent_s(self) -> float:
        """The time since the last message began to be sent."""
        return self._loop.time() - self._sent_s

    def send_at_once(self, texts: Texts) -> None:
        """From now on, send items without the reader of the queue where that is possible.

        It is possible while the reader waits for an item, since everything before has been sent
        then (see ``SubscriberQueue.hand_over``), and while no message is outstanding.
        """

        def take(item: QueueItem) -> bool:
            if not self._is_free():
                return False
            messages = texts(item)
            if messages is None:
                return False
            if messages:
                self._begin(messages[0])
                for text in messages[1:]:
                    self._queue.put(text)
            return True

        self._queue.hand_over = take

    async def send(self, text: str) -> None:
        """Send one message after all others, waiting while the client does not read. Raises
        SocketClosed, and TimeoutError if that takes too long."""
        if self._outstanding is not None:
            async with asyncio.timeout_at(self._sent_s + SEND_TIMEOUT_S):
                await self._settle(self._outstanding)
        self._sent_s = self._loop.time()
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await self.socket.send(text)

    def stop(self) -> None:
        """Send nothing at once any more, and watch no deadline. Idempotent."""
        self._queue.hand_over = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_free(self) -> bool:
        """Whether no message is outstanding. After a failure the reader of the queue is told."""
        outstanding = self._outstanding
        if outstanding is None:
            return True
        if not outstanding.done() or outstanding.cancelled() or outstanding.exception() is not None:
            return False
        self._outstanding = None
        return True

    def _begin(self, text: str) -> None:
        self._outstanding = self.socket.begin_send(text)
        self._sent_s = self._loop.time()
        # Not a timer for each message: one that has been started is good for the next ones, too.
        if self._timer is None:
            self._timer = self._loop.call_later(SEND_TIMEOUT_S, self._look)

    def _look(self) -> None:
        """Close the queue if the outstanding message is late."""
        self._timer = None
        if self._outstanding is None or self._outstanding.done():
            return
        left_s = self._sent_s + SEND_TIMEOUT_S - self._loop.time()
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._look)
        else:
            self._queue.close(EndReason.SLOW)

    async def _settle(self, outstanding: asyncio.Future[None]) -> None:
        try:
            await outstanding
        except RuntimeError as error:  # as in WebSocket
            raise SocketClosed from error
        self._outstanding = None
