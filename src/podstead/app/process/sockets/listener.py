"""The listener for WebSockets of one worker.

They have a port of their own, since the HTTP server cannot give connections away. It accepts them
as long as the worker has fewer than ``max_connections`` of them; more wait in the system's queue.
How long a connection may be silent, and how many an address may hold, is watched as for the HTTP
server (``connections/``).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from podstead.app.process.sockets.connection import (
    Address,
    Application,
    SocketConnection,
    text_frame,
)

logger = logging.getLogger("podstead.app")

_ACCEPTED_AT_ONCE = 32
_PAUSE_S = 0.1
_TLS_HANDSHAKE_TIMEOUT_S = 10.0


class SocketListener:
    """Accepts connections for WebSockets. Belongs to one event loop."""

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
        self.application = application
        self.handshake_timeout_s = handshake_timeout_s
        self.server_address = _address(listener.getsockname())
        self.scheme = "ws" if tls() is None else "wss"
        self.done: asyncio.Future[None] = loop.create_future()
        self.done.set_result(None)
        self._listener = listener
        self._tls = tls
        self._max_connections = max_connections
        self._loop = loop
        self._connections: set[SocketConnection] = set()
        self._openings: set[asyncio.Task[None]] = set()
        self._is_accepting = False
        self._is_stopping = False
        self._framed: tuple[str, bytes] = ("", b"")

    def start(self) -> None:
        """Begin to accept connections. Idempotent; does nothing after :meth:`stop`."""
        if not self._is_accepting and not self._is_stopping:
            self._is_accepting = True
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def stop(self) -> None:
        """Accept nothing more. Open sockets stay open."""
        self._is_stopping = True
        self._pause()
        self._listener.close()

    def frame_of(self, text: str) -> bytes:
        # A notification goes to many clients, one after the other.
        if text != self._framed[0]:
            self._framed = (text, text_frame(text))
        return self._framed[1]

    def note_end(self, connection: SocketConnection) -> None:
        self._connections.discard(connection)
        self.start()

    def _pause(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._listener.fileno())

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            if len(self._connections) >= self._max_connections:
                self._pause()
                return
            try:
                accepted, peer = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.warning("A connection could not be accepted: %s", error.strerror)
                self._pause()
                self._loop.call_later(_PAUSE_S, self.start)
                return
            self._open(accepted, _address(peer))

    def _open(self, accepted: socket.socket, peer: Address) -> None:
        accepted.settimeout(0)
        tls = self._tls()
        plain = accepted if tls is None else None
        connection = SocketConnection(self, peer, self._loop, plain)
        self._connections.add(connection)
        opening = self._loop.create_task(self._take_over(accepted, connection, tls))
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)

    async def _take_over(
        self,
        accepted: socket.socket,
        connection: SocketConnection,
        tls: ssl.SSLContext | None,
    ) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else _TLS_HANDSHAKE_TIMEOUT_S,
            )
        except OSError:
            accepted.close()
            self.note_end(connection)


def _address(name: tuple[object, ...]) -> Address:
    return str(name[0]).partition("%")[0], str(name[1])
