"""One WebSocket as endpoints see it: accepted or refused, and then messages both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from podstead.web.asgi import Message, Receive, Scope, Send
from podstead.web.response import Response

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
