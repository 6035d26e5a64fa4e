"""Notifications of a channel over a WebSocket: one message in each text frame (N-20).

A client needs only the URL. What it sends is ignored, and so are sub-protocols that it offers.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final

from podstead.core.errors import NotFound
from podstead.core.identity import Identity
from podstead.notifications.channel_types import ChannelType
from podstead.notifications.channels import Channel, Channels, terms_of
from podstead.notifications.deliveries import QueueItem, SubscriberQueue
from podstead.notifications.listening import Ended, Listeners, Listening
from podstead.notifications.messages import Messages, Notification
from podstead.web.open_sockets import OpenSockets
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.socket_endpoint import SocketEndpoint
from podstead.web.socket_sender import SocketSender
from podstead.web.websocket import SocketClosed, WebSocket

_EXPLANATION: Final = b"This is the WebSocket of a notification channel: connect to it.\n"


class ChannelSocket(SocketEndpoint):
    """Sends the notifications of a channel over WebSockets, of which several may be open."""

    def __init__(
        self,
        *,
        channels: Channels,
        listeners: Listeners,
        sockets: OpenSockets,
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

    async def connect(self, socket: WebSocket, request: Request, _: Identity | None) -> None:
        """Serve one socket to its end.

        Before it accepts the socket, it raises NotFound for a channel that has ended,
        NotAuthenticated and AccessDenied if the subscriber may no longer read the topic,
        RateLimited and ServerTrouble.
        """
        channel = await self._channel(request)
        terms = terms_of(channel)
        with self._sockets.admit(request.client_address, terms.subscriber.agent) as queue:
            listening = await self._listeners.listen(terms, queue=queue)
            sender = SocketSender(socket, queue)
            sender.send_at_once(partial(self._texts_at_once, listening, channel))
            messages = self._messages_of(listening, channel)
            await self._serve(sender, messages, read=partial(_until_closed, socket, queue))

    async def _channel(self, request: Request) -> Channel:
        key = request.path.split("/")[-2]
        channel = await self._channels.find(key)
        if channel is None or channel.channel_type != ChannelType.WEB_SOCKET.value:
            raise NotFound("There is no such channel; it may have ended")
        await self._channels.note_use(key)
        return channel

    async def _messages_of(
        self, listening: Listening, channel: Channel
    ) -> AsyncGenerator[str | Ended, None]:
        async with contextlib.aclosing(listening.heard()) as all_heard:
            async for heard in all_heard:
                if isinstance(heard, Notification):
                    yield self._messages.text(heard, channel.media_type)
                elif isinstance(heard, Ended):
                    yield heard

    def _texts_at_once(
        self, listening: Listening, channel: Channel, item: QueueItem
    ) -> Sequence[str] | None:
        if not isinstance(item, Notification) or not listening.is_immediate:
            return None
        if not listening.concerns(item):
            return ()
        return (self._messages.text(item, channel.media_type),)


async def _until_closed(socket: WebSocket, queue: SubscriberQueue) -> None:
    """Ignore what the client sends, and notice when it leaves."""
    with contextlib.suppress(SocketClosed):
        while True:
            await socket.receive()
    queue.close()
