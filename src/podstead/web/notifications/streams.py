"""Notifications over one long HTTP response: Server-Sent Events, and streams of messages.

``EventSourceChannel2023`` sends Server-Sent Events (WHATWG HTML, section 9.2). The id of each is
the number of its change in the log, so a receiver that reconnects gets everything that it missed,
once and in order (N-23). ``StreamingHTTPChannel2023`` sends one message in each chunk, on a channel
or on the stream that every resource has (N-22). It has no ids, so missed messages are not repeated.
"""

import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import unquote

from podstead.core.errors import BadRequest, NotFound
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD, TURTLE, choose
from podstead.notifications import channel_types, deliveries, readers
from podstead.notifications import listening as notifications_listening
from podstead.notifications.channel_documents import topic_path
from podstead.notifications.channels import Channel, Channels, terms_of
from podstead.notifications.messages import Messages, Notification
from podstead.web import routes, websocket
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, content_response

_EVENTS: Final = "text/event-stream"
_HEADERS: Final = (
    NO_STORE,
    (b"x-accel-buffering", b"no"),  # asks a reverse proxy to hold nothing back
)
_RECONNECT_MS: Final = 2000
"""How long a receiver waits before it reconnects."""
_SEQUENCE: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Sends messages over streamed HTTP responses."""

    base_url: str
    channels: Channels
    listeners: notifications_listening.Listeners
    sockets: websocket.OpenSockets
    messages: Messages

    async def events(self, request: Request, _: Identity | None) -> Response:
        """``GET`` of a channel's events.

        Raises NotFound for a channel that has ended, BadRequest, ServerTrouble; NotAuthenticated
        and AccessDenied if its topic may not be read any more, RateLimited for too many listeners.
        """
        channel = await self._channel(request, channel_types.EVENT_SOURCE)
        last_id = request.fields.get(b"last-event-id")
        if last_id is not None and _SEQUENCE.fullmatch(last_id) is None:
            raise BadRequest("The Last-Event-ID is not one of this stream")
        after = channel.began if last_id is None else int(last_id)
        place = await self._place(request, terms_of(channel), after=after)
        return place.response(request, _EVENTS, self._as_events(place.listening, channel))

    async def stream(self, request: Request, _: Identity | None) -> Response:
        """``GET`` of a channel's messages; raises as :meth:`events`."""
        channel = await self._channel(request, channel_types.STREAMING_HTTP)
        place = await self._place(request, terms_of(channel))
        messages = self._as_messages(place.listening, channel.media_type)
        return place.response(request, channel.media_type, messages)

    async def stream_of_resource(self, request: Request, agent: Identity | None) -> Response:
        """``GET`` of the messages of any resource, whose URL is the last segment of the path.

        The first message has the current state of the resource. Raises Unprocessable for what is
        not a URL of this server, NotAuthenticated, AccessDenied, ServerTrouble.
        """
        topic = topic_path(unquote(_last_segment(request)), base_url=self.base_url)
        media_type = choose(request.fields.get(b"accept"), (TURTLE, JSON_LD)) or TURTLE
        subscriber = readers.Subscriber(agent, request.fields.get(b"origin"))
        expires_s = agent.expires_at_s if agent else None
        end_ms = None if expires_s is None else expires_s * 1000
        place = await self._place(
            request, notifications_listening.Terms(topic, subscriber, state="", end_ms=end_ms)
        )
        messages = self._as_messages(place.listening, media_type)
        return place.response(request, media_type, messages)

    async def changes(
        self, request: Request, agent: Identity | None, topic: ResourcePath
    ) -> Response:
        """Events that say no more than that a resource has changed, for the pages of this server.

        Raises NotAuthenticated, AccessDenied, RateLimited, ServerTrouble.
        """
        expires_s = agent.expires_at_s if agent else None
        end_ms = None if expires_s is None else expires_s * 1000
        terms = notifications_listening.Terms(
            topic, readers.Subscriber(agent, None), state=None, end_ms=end_ms
        )
        place = await self._place(request, terms)
        return place.response(request, _EVENTS, self._as_signs(place.listening))

    async def _as_signs(
        self, listening: notifications_listening.Listening
    ) -> AsyncGenerator[bytes, None]:
        yield b"retry: %d\n\n" % _RECONNECT_MS
        async for heard in listening.heard():
            match heard:
                case Notification() | notifications_listening.ChangesLost():
                    yield b"data: changed\n\n"
                case notifications_listening.Idle():
                    yield b":\n\n"
                case notifications_listening.Ended():
                    return
                case notifications_listening.CaughtUp():
                    pass

    async def _place(
        self, request: Request, terms: notifications_listening.Terms, *, after: int | None = None
    ) -> "_Place":
        """A place among the open streams. Raises RateLimited, and what listening raises."""
        with ExitStack() as stack:
            admitted = self.sockets.admit(request.client_address, terms.subscriber.agent)
            queue = stack.enter_context(admitted)
            listening = await self.listeners.listen(terms, queue=queue, after=after)
            return _Place(listening, stack.pop_all())

    async def _channel(self, request: Request, channel_type: channel_types.ChannelType) -> Channel:
        key = request.path.split("/")[-2]
        channel = await self.channels.find(key)
        if channel is None or channel.channel_type != channel_type.name:
            raise NotFound("There is no such channel; it may have ended")
        await self.channels.note_use(key)
        return channel

    async def _as_events(
        self, listening: notifications_listening.Listening, channel: Channel
    ) -> AsyncGenerator[bytes, None]:
        yield b"retry: %d\n\n" % _RECONNECT_MS
        async for heard in listening.heard():
            match heard:
                case Notification():
                    message = self.messages.message(heard, channel.media_type)
                    yield b"id: %d\n%s\n" % (heard.sequence, _data(message))
                case notifications_listening.CaughtUp(sequence):
                    yield b"id: %d\n\n" % sequence  # without data: noted, and nothing dispatched
                case notifications_listening.ChangesLost():
                    topic = (self.base_url + channel.topic).encode("ascii")
                    yield b"event: lost\n%s\n" % _data(topic)
                case notifications_listening.Idle():
                    yield b":\n\n"
                case notifications_listening.Ended():
                    return

    async def _as_messages(
        self, listening: notifications_listening.Listening, media_type: str
    ) -> AsyncGenerator[bytes, None]:
        yield b""  # makes the HTTP server send the status before the first message
        async for heard in listening.heard():
            if isinstance(heard, Notification):
                # Nothing else may be sent: receivers treat each chunk as a message.
                yield self.messages.message(heard, media_type).rstrip(b"\n") + b"\n"


class ResourceStreams:
    """Distinguishes the streams of resources from the channels beside them."""

    def __init__(self, streams: Streams, *, otherwise: routes.Endpoint) -> None:
        self._streams = streams
        self._otherwise = otherwise

    async def get(self, request: Request, agent: Identity | None) -> Response:
        """Raises as :meth:`Streams.stream_of_resource`, and what the other endpoint raises."""
        if ":" in _last_segment(request):  # a URL, which no key looks like
            return await self._streams.stream_of_resource(request, agent)
        return await self._otherwise(request, agent)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place among the open streams, until it is given up."""

    listening: notifications_listening.Listening
    stack: ExitStack

    def response(
        self, request: Request, content_type: str, pieces: AsyncGenerator[bytes, None]
    ) -> Response:
        """The response of these pieces; a HEAD request gives its place up at once."""
        body = _Live(pieces, self.stack)
        if request.method == "HEAD":
            self.stack.close()
        return content_response(body, content_type, method=request.method, headers=_HEADERS)


class _Live(AsyncIterator[bytes]):
    """The pieces of a response that lasts until its receiver disconnects or the channel ends.

    Closing it gives the place up, even if nothing has been sent.
    """

    def __init__(self, pieces: AsyncGenerator[bytes, None], stack: ExitStack) -> None:
        self._pieces = pieces
        self._stack = stack

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        self._stack.close()
        await self._pieces.aclose()


def _data(content: bytes) -> bytes:
    return b"".join(b"data: %s\n" % line for line in content.splitlines())


def _last_segment(request: Request) -> str:
    return request.path.rpartition("/")[2]


# Notifications of a channel over a WebSocket: one message in each text frame (N-20).
#
# A client needs only the URL. What it sends is ignored, and so are sub-protocols that it offers.

_EXPLANATION: Final = b"This is the WebSocket of a notification channel: connect to it.\n"


class ChannelSocket(websocket.SocketEndpoint):
    """Sends the notifications of a channel over WebSockets, of which several may be open."""

    def __init__(
        self,
        *,
        channels: Channels,
        listeners: notifications_listening.Listeners,
        sockets: websocket.OpenSockets,
        messages: Messages,
    ) -> None:
        super().__init__(sockets, explanation=_EXPLANATION)
        self._channels = channels
        self._listeners = listeners
        self._messages = messages

    async def get(self, request: Request, identity: Identity | None) -> Response:
        """Require a WebSocket. Raises NotFound for a channel that has ended, StorageError."""
        await self._channel(request)
        return await super().get(request, identity)

    async def connect(
        self, socket: websocket.WebSocket, request: Request, _: Identity | None
    ) -> None:
        """Serve one socket to its end.

        Before it accepts the socket, it raises NotFound for a channel that has ended,
        NotAuthenticated and AccessDenied if the subscriber may no longer read the topic,
        RateLimited and ServerTrouble.
        """
        channel = await self._channel(request)
        terms = terms_of(channel)
        with self._sockets.admit(request.client_address, terms.subscriber.agent) as queue:
            listening = await self._listeners.listen(terms, queue=queue)
            sender = websocket.SocketSender(socket, queue)
            sender.send_at_once(partial(self._texts_at_once, listening, channel))
            messages = self._messages_of(listening, channel)
            await self._serve(sender, messages, read=partial(_until_closed, socket, queue))

    async def _channel(self, request: Request) -> Channel:
        key = request.path.split("/")[-2]
        channel = await self._channels.find(key)
        if channel is None or channel.channel_type != channel_types.WEB_SOCKET.name:
            raise NotFound("There is no such channel; it may have ended")
        await self._channels.note_use(key)
        return channel

    async def _messages_of(
        self, listening: notifications_listening.Listening, channel: Channel
    ) -> AsyncGenerator[str | notifications_listening.Ended, None]:
        async with contextlib.aclosing(listening.heard()) as all_heard:
            async for heard in all_heard:
                if isinstance(heard, Notification):
                    yield self._messages.text(heard, channel.media_type)
                elif isinstance(heard, notifications_listening.Ended):
                    yield heard

    def _texts_at_once(
        self,
        listening: notifications_listening.Listening,
        channel: Channel,
        item: deliveries.QueueItem,
    ) -> Sequence[str] | None:
        if not isinstance(item, Notification) or not listening.is_immediate:
            return None
        if not listening.concerns(item):
            return ()
        return (self._messages.text(item, channel.media_type),)


async def _until_closed(socket: websocket.WebSocket, queue: deliveries.SubscriberQueue) -> None:
    """Ignore what the client sends, and notice when it leaves."""
    with contextlib.suppress(websocket.SocketClosed):
        while True:
            await socket.receive()
    queue.close()
