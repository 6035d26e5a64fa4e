"""Receiving changes over a connection, with any of the protocols.

A receiver is used for one connection. It ends when the connection ends, and raises WatchError if
there is something to report.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final

from podstead.core.errors import RequestRefused
from podstead.core.media_types import JSON_LD, TURTLE, essence
from podstead.features.watch import changes
from podstead.features.watch.discovery import Protocol
from podstead.features.watch.server import Interrupted, NotServed, Server, WatchError, host_of
from podstead.outbound.transport import RemoteResponse

MAX_MESSAGE_BYTES: Final = 1024 * 1024
ACK_TIMEOUT_S: Final = 30.0
"""The time limit for an older server's response to ``sub``."""

_EVENTS: Final = "text/event-stream"
_LOST_EVENT: Final = "lost"
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection is established; every change is received from now on."""


@dataclass(frozen=True, slots=True)
class ChangesMissed:
    """Changes were missed: they were too long ago, or a message could not be parsed."""


Reception = Connected | changes.ReceivedChange | ChangesMissed


@dataclass
class ResumePoint:
    """The position from which a new connection can resume."""

    last_id: str = ""
    retry_ms: int | None = None
    state: str | None = None
    """The last state of the topic that was received."""


@dataclass(frozen=True, slots=True)
class ChannelReceiver:
    """Receives the changes of one topic over one protocol."""

    server: Server
    protocol: Protocol
    _: KW_ONLY
    topic_url: str
    receive_from: str
    place: ResumePoint

    def receive(self) -> AsyncGenerator[Reception, None]:
        """Receive from one connection. Raises WatchError."""
        match self.protocol:
            case Protocol.EVENT_SOURCE:
                return self._events()
            case Protocol.WEB_SOCKET:
                return self._messages_of_socket()
            case Protocol.STREAMING_HTTP:
                return self._messages()
            case Protocol.STREAM_OF_RESOURCE:
                return self._messages_after_the_first()
            case Protocol.SOLID_0_1:
                return self._lines()

    async def _events(self) -> AsyncGenerator[Reception, None]:
        place = self.place
        async with self.server.stream(
            self.receive_from, accept=_EVENTS, last_id=place.last_id, with_token=False
        ) as answer:
            self._check(answer, _EVENTS)
            yield Connected()
            stream = changes.EventStream(place.last_id)
            async for piece in answer.chunks:
                try:
                    events = stream.feed(piece)
                except changes.EventTooLarge as error:
                    raise self._unreadable() from error
                for event in events:
                    is_lost = event.kind == _LOST_EVENT
                    yield ChangesMissed() if is_lost else _read(event.data.encode())
                place.last_id, place.retry_ms = stream.last_id, stream.retry_ms

    async def _messages_of_socket(self) -> AsyncGenerator[Reception, None]:
        async with self.server.web_socket(self.receive_from, with_token=False) as opened:
            yield Connected()
            async for text in opened.texts():
                yield _read(text.encode())

    async def _messages(self) -> AsyncGenerator[Reception, None]:
        async with self.server.stream(
            self.receive_from, accept=f"{TURTLE}, {JSON_LD};q=0.9", with_token=True
        ) as answer:
            take = self._taker(self._check(answer, TURTLE, JSON_LD))
            yield Connected()
            content = b""
            async for piece in answer.chunks:
                changes, content = take(content + piece)
                if len(content) > MAX_MESSAGE_BYTES:
                    raise self._unreadable()
                for change in changes:
                    yield change

    async def _messages_after_the_first(self) -> AsyncGenerator[Reception, None]:
        """The first message states the current state of the resource (N-22), which is a change only
        if the state that was received before the connection was lost differs."""
        is_first, known = True, self.place.state
        async for received in self._messages():
            if isinstance(received, changes.ReceivedChange) and is_first:
                is_first = False
                if known is None or received.state in (None, known):
                    self.place.state = received.state
                    continue
            yield received

    async def _lines(self) -> AsyncGenerator[Reception, None]:
        async with self.server.web_socket(
            self.receive_from, protocols=[Protocol.SOLID_0_1.value], with_token=True
        ) as opened:
            await opened.send(f"sub {self.topic_url}")
            lines = opened.texts()
            await self._acknowledged(lines)
            yield Connected()
            async for line in lines:
                word, _, rest = line.strip().partition(" ")
                if word == "pub" and rest:
                    yield changes.read_pub(rest, now_ms=time.time_ns() // 1_000_000)

    async def _acknowledged(self, lines: AsyncIterator[str]) -> None:
        """Wait for ``ack`` (L-4). Raises WatchError."""
        host = host_of(self.receive_from)
        try:
            async with asyncio.timeout(ACK_TIMEOUT_S):
                async for line in lines:
                    word, _, rest = line.strip().partition(" ")
                    if word == "ack":
                        return
                    if word in ("err", "error"):
                        raise WatchError(f"{host} refused: {rest}.")
        except TimeoutError:
            raise Interrupted(f"{host} did not respond in time.") from None
        raise Interrupted(f"{host} closed the connection.")

    def _check(self, answer: RemoteResponse, *media_types: str) -> str:
        """The media type of the response, which must be one of those. Raises WatchError."""
        if answer.status != _OK:
            raise NotServed(answer.status, host=host_of(self.receive_from))
        try:
            media_type = essence(answer.headers.get("Content-Type", ""))
        except RequestRefused as error:
            raise self._unreadable() from error
        if media_type not in media_types:
            raise self._unreadable()
        return media_type

    def _taker(
        self, media_type: str
    ) -> Callable[[bytes], tuple[list[changes.ReceivedChange], bytes]]:
        if media_type == JSON_LD:
            return changes.split_json
        return lambda content: changes.split_turtle(content, url=self.receive_from)

    def _unreadable(self) -> WatchError:
        return WatchError(f"Cannot read the messages from {host_of(self.receive_from)} as changes.")


def _read(content: bytes) -> changes.ReceivedChange | ChangesMissed:
    try:
        return changes.read_json(content)
    except changes.InvalidMessage:
        return ChangesMissed()
