"""One WebSocket as endpoints see it: accepted or refused, and then messages both ways."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Hashable, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from podstead.core import background, errors, identity
from podstead.notifications.deliveries import CAPACITY, EndReason, QueueItem, SubscriberQueue
from podstead.notifications.listening import Ended
from podstead.web.asgi import Message, Receive, Scope, Send
from podstead.web.limits import address_key
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, content_response

NORMAL = 1000
GOING_AWAY = 1001
PROTOCOL_ERROR = 1002
POLICY_VIOLATION = 1008
INTERNAL_ERROR = 1011
TRY_AGAIN_LATER = 1013
"""Codes with which a socket is closed (RFC 6455 section 7.4.1 and its registry)."""


class SocketClosed(Exception):
    """The client has disconnected; nothing can be received or sent."""


class WebSocket:
    """One WebSocket, beginning with its handshake."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Of an ASGI scope of type ``websocket``."""
        self._receive = receive
        self._send = send
        self.offered: Sequence[str] = tuple(scope.get("subprotocols") or ())
        """The sub-protocols that the client supports."""
        self.is_accepted = False

    async def accept(self, protocol: str | None = None) -> None:
        """Accept the socket with one of the sub-protocols offered. Raises SocketClosed."""
        self.is_accepted = True
        await self._say({"type": "websocket.accept", "subprotocol": protocol, "headers": []})

    async def refuse(self, response: Response) -> None:
        """Respond to the handshake with an HTTP response instead.

        The HTTP server accepts each field once, so fields of the same name are joined into a list.
        """
        fields: dict[bytes, bytes] = {}
        for name, value in response.headers:
            fields[name] = fields[name] + b", " + value if name in fields else value
        body = response.body if isinstance(response.body, bytes) else b""
        start = {"status": response.status, "headers": list(fields.items())}
        await self._send({"type": "websocket.http.response.start", **start})
        # The HTTP server expects the name that this event has for ordinary requests.
        await self._send({"type": "http.response.body", "body": body})

    async def receive(self) -> str | bytes:
        """The next message. Raises SocketClosed."""
        message = await self._receive()
        # The wait may have ended at once. What was read for the message before must not answer this
        # one, and is not older than the callback that reads it (storage/sqlite/row_changes.py).
        await asyncio.sleep(0)
        if message["type"] != "websocket.receive":
            raise SocketClosed
        text: str | None = message.get("text")
        if text is not None:
            return text
        content: bytes = message.get("bytes") or b""
        return content

    async def send(self, text: str) -> None:
        """Send one message, waiting while the client does not read. Raises SocketClosed."""
        await self._say({"type": "websocket.send", "text": text})

    def begin_send(self, text: str) -> asyncio.Future[None]:
        """Begin to send one message. The future is done when the HTTP server has passed it on; it
        fails with RuntimeError if the client has disconnected."""
        sending = asyncio.ensure_future(self._send({"type": "websocket.send", "text": text}))
        # The HTTP server returns a future, which is itself. A task for another awaitable would
        # report a failure that nobody asks for.
        if isinstance(sending, asyncio.Task):
            sending.add_done_callback(_note_failure)
        return sending

    async def close(self, code: int, reason: str = "") -> None:
        """Close the socket. Raises SocketClosed."""
        await self._say({"type": "websocket.close", "code": code, "reason": reason})

    async def _say(self, message: Message) -> None:
        try:
            await self._send(message)
        except RuntimeError as error:  # raised by the HTTP server if the client has disconnected
            raise SocketClosed from error


def _note_failure(sending: asyncio.Future[None]) -> None:
    if not sending.cancelled():
        sending.exception()


# Open sockets and streams: how many there may be, and how they end when the server stops.
#
# Each WebSocket and each streamed response takes memory and a connection, so the number of those
# that one address or one agent has open is limited (N-31). Each worker counts its own.

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
    def admit(
        self, client_address: str, agent: identity.Identity | None
    ) -> Iterator[SubscriberQueue]:
        """The queue of a new socket, which is closed when the context ends. Raises RateLimited."""
        places: list[tuple[Hashable, int]] = [
            (("address", address_key(client_address)), self._per_address)
        ]
        if agent is not None:
            places.append((("agent", agent.iri), self._per_agent))
        if any(0 < most <= self._open[place] for place, most in places):
            raise errors.RateLimited(retry_after_s=_RETRY_S)
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


# Messages reach the client of a WebSocket in their order, one outstanding at a time.
#
# A message that finds its socket free is handed to the HTTP server at once, by whoever puts it into
# the queue: with a thousand watchers of one document, a task that wakes up for each message would
# cost more than the message. A message that comes while the previous one is outstanding waits in
# the queue, so a client that reads slowly fills its own queue (which closes when it is full) and
# nothing else. If a client takes nothing for ``SEND_TIMEOUT_S``, its queue is closed.

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


# What the WebSocket endpoints have in common: the response to a plain request, limits, closing.
#
# An endpoint yields the messages to send. How long a client may take nothing, what ends the socket
# and with which code it is closed (RFC 6455 section 7.4.1) is decided here.

_CLOSE_TIMEOUT_S: Final = 5.0
_CLOSE_CODES: Final = MappingProxyType(
    {
        None: NORMAL,
        EndReason.CLOSED: NORMAL,
        EndReason.EXPIRED: POLICY_VIOLATION,
        EndReason.REVOKED: POLICY_VIOLATION,
        EndReason.SLOW: TRY_AGAIN_LATER,
        EndReason.FAILED: INTERNAL_ERROR,
        EndReason.STOPPING: GOING_AWAY,
    }
)

Messages = AsyncGenerator[str | Ended, None]
"""What to send. The socket is closed after an :class:`Ended`."""


class SocketEndpoint:
    """The base of the endpoints at which WebSockets are opened."""

    def __init__(self, sockets: OpenSockets, *, explanation: bytes) -> None:
        """``explanation`` tells a client that does not open a WebSocket what to do."""
        self._sockets = sockets
        self._explanation = explanation

    async def get(self, request: Request, _: identity.Identity | None) -> Response:
        """Require a WebSocket (RFC 9110 section 15.5.22)."""
        return content_response(
            self._explanation,
            "text/plain; charset=utf-8",
            method=request.method,
            status=426,
            headers=[(b"upgrade", b"websocket"), NO_STORE],
        )

    async def _serve(
        self,
        sender: SocketSender,
        messages: Messages,
        *,
        read: Callable[[], Coroutine[None, None, None]],
        protocol: str | None = None,
    ) -> None:
        """Accept a socket with one of the sub-protocols offered, and serve it to its end. ``read``
        receives what the client sends while ``messages`` are sent."""
        async with contextlib.aclosing(messages):
            with contextlib.suppress(SocketClosed):
                await sender.socket.accept(protocol)
                reading = asyncio.create_task(read())
                try:
                    ending = await _send_all(sender, messages)
                finally:
                    sender.stop()
                    await background.cancel_and_wait([reading])
                await _close(sender.socket, ending)


async def _send_all(sender: SocketSender, messages: Messages) -> EndReason | None:
    """Send messages until something ends the socket. Raises SocketClosed."""
    async for message in messages:
        if isinstance(message, Ended):
            return message.ending
        try:
            await sender.send(message)
        except TimeoutError:
            return EndReason.SLOW
    return None


async def _close(socket: WebSocket, ending: EndReason | None) -> None:
    reason = "the channel has ended" if ending is None else ending.value
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await socket.close(_CLOSE_CODES[ending], reason)
