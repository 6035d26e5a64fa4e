"""What do the WebSocket endpoints have in common? The response to a plain request, limits, closing.

An endpoint yields the messages to send. How long a client may take nothing, what ends the socket
and with which code it is closed (RFC 6455 section 7.4.1) is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from types import MappingProxyType
from typing import Final

from podstead.core.identity import Identity
from podstead.notifications.deliveries import EndReason
from podstead.notifications.listening import Ended
from podstead.web import websocket
from podstead.web.open_sockets import OpenSockets
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, content_response
from podstead.web.socket_sender import SocketSender
from podstead.web.websocket import SocketClosed, WebSocket

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

Messages = AsyncGenerator[str | Ended, None]
"""What to send. The socket is closed after an :class:`Ended`."""


class SocketEndpoint:
    """The base of the endpoints at which WebSockets are opened."""

    def __init__(self, sockets: OpenSockets, *, explanation: bytes) -> None:
        """``explanation`` tells a client that does not open a WebSocket what to do."""
        self._sockets = sockets
        self._explanation = explanation

    async def get(self, request: Request, _: Identity | None) -> Response:
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
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
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
