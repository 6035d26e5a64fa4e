"""The listener for WebSockets of one worker.

They have a port of their own, since the HTTP server cannot give connections away. It accepts them
as long as the worker has fewer than ``max_connections`` of them; more wait in the system's queue.
How long a connection may be silent, and how many an address may hold, is watched as for the HTTP
server (``connections/``).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from podstead.app.process.accepting import Acceptor, Address
from podstead.app.process.sockets.connection import SocketConnection, text_frame
from podstead.web.asgi import Application


class SocketListener(Acceptor[SocketConnection]):
    """Accepts connections for WebSockets."""

    def __init__(
        self,
        listener: socket.socket,
        application: Application,
        *,
        tls: Callable[[], ssl.SSLContext | None],
        handshake_timeout_s: float,
        max_connections: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``tls`` is asked for each connection, since certificates are renewed."""
        super().__init__(listener, max_connections=max_connections, loop=loop)
        self.application = application
        self.handshake_timeout_s = handshake_timeout_s
        self.scheme = "ws" if tls() is None else "wss"
        self.done: asyncio.Future[None] = loop.create_future()
        self.done.set_result(None)
        self._tls = tls
        self._framed: tuple[str, bytes] = ("", b"")

    def frame_of(self, text: str) -> bytes:
        # A notification goes to many clients, one after the other.
        if text != self._framed[0]:
            self._framed = (text, text_frame(text))
        return self._framed[1]

    def _open(self, accepted: socket.socket, peer: Address) -> None:
        tls = self._tls()
        plain = accepted if tls is None else None
        self._connect(SocketConnection(self, peer, self._loop, plain), accepted, tls)
