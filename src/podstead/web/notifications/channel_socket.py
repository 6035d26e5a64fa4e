"""How does a receiver hear over a WebSocket? One message a text frame, and nothing else (N-20).

The URL is all that a client needs to have. What it sends is not looked at; sub-protocols that it
offers are neither needed nor taken up.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import MappingProxyType
from typing import Final

from podstead.core.errors import NotFound
from podstead.core.identity import Identity
from podstead.notifications.channel_types import ChannelType
from podstead.notifications.channels import Channel, Channels, terms_of
from podstead.notifications.listening import Ended, Listeners, Listening
from podstead.notifications.messages import Messages
from podstead.notifications.notification import Notification
from podstead.notifications.subscriber_queue import EndReason, SubscriberQueue
from podstead.web import websocket
from podstead.web.open_sockets import OpenSockets
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.websocket import SocketClosed, WebSocket

SEND_TIMEOUT_S: Final = 30.0
"""How long a client may take nothing at all."""
_CLOSE_TIMEOUT_S: Final = 5.0
_CLOSE_CODES: Final = MappingProxyType(
    {
        None: websocket.NORMAL,
        EndReason.CLOSED: websocket.NORMAL,
        EndReason.EXPIRED: websocket.POLICY_VIOLATION,
        EndReason.REVOKED: websocket.POLICY_VIOLATION,
        EndReason.SLOW: websocket.TRY_AGAIN_LATER,
        EndReason.STOPPING: websocket.GOING_AWAY,
    }
)
_EXPLANATION: Final = b"This is the WebSocket of a notification channel: connect to it.\n"


class ChannelSocket:
    """Sends messages over WebSockets; several may be open on one channel."""

    def __init__(
        self,
        *,
        channels: Channels,
        listeners: Listeners,
        sockets: OpenSockets,
        messages: Messages,
    ) -> None:
        self._channels = channels
        self._listeners = listeners
        self._sockets = sockets
        self._messages = messages

    async def get(self, request: Request, _: Identity | None) -> Response:
        """Tell who does not ask for a WebSocket that this is one (RFC 9110 section 15.5.22).

        Raises NotFound for a channel that has ended, StorageError.
        """
        await self._channel(request)
        headers = [
            (b"upgrade", b"websocket"),
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"cache-control", b"no-store"),
        ]
        return Response(426, headers, b"" if request.method == "HEAD" else _EXPLANATION)

    async def connect(self, socket: WebSocket, request: Request, _: Identity | None) -> None:
        """Serve one socket to its end.

        Raises, before it is taken up, NotFound for a channel that has ended, NotAuthenticated and
        AccessDenied if its topic may not be read any more, RateLimited, ServerTrouble.
        """
        channel = await self._channel(request)
        terms = terms_of(channel)
        with self._sockets.admit(request.client_address, terms.subscriber.agent) as queue:
            listening = await self._listeners.listen(terms, queue=queue)
            with contextlib.suppress(SocketClosed):
                await socket.accept()
                watching = asyncio.create_task(_until_closed(socket, queue))
                try:
                    ending = await self._speak(socket, listening, channel)
                finally:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)
                await _close(socket, ending)

    async def _channel(self, request: Request) -> Channel:
        key = request.path.split("/")[-2]
        channel = await self._channels.find(key)
        if channel is None or channel.channel_type != ChannelType.WEB_SOCKET.value:
            raise NotFound("There is no such channel; it may have ended")
        await self._channels.note_use(key)
        return channel

    async def _speak(
        self, socket: WebSocket, listening: Listening, channel: Channel
    ) -> EndReason | None:
        """Send messages until something ends it. Raises SocketClosed."""
        async with contextlib.aclosing(listening.heard()) as all_heard:
            async for heard in all_heard:
                if isinstance(heard, Ended):
                    return heard.ending
                if isinstance(heard, Notification):
                    message = self._messages.message(heard, channel.media_type)
                    try:
                        async with asyncio.timeout(SEND_TIMEOUT_S):
                            await socket.send(message.decode())
                    except TimeoutError:
                        return EndReason.SLOW
        return None


async def _until_closed(socket: WebSocket, queue: SubscriberQueue) -> None:
    """Look at nothing that the client sends, and hear it leave."""
    with contextlib.suppress(SocketClosed):
        while True:
            await socket.receive()
    queue.close()


async def _close(socket: WebSocket, ending: EndReason | None) -> None:
    reason = "the channel has ended" if ending is None else ending.value
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await socket.close(_CLOSE_CODES[ending], reason)
