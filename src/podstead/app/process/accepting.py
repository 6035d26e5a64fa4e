"""Accepts connections at a listening socket, for those listeners of a worker that are not the HTTP
server's."""

import asyncio
import logging
import socket
import ssl
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

logger = logging.getLogger("podstead.app")

Connection = TypeVar("Connection", bound=asyncio.BaseProtocol)
Address = tuple[str, str]
"""A host and a port, both as text, in the form that the HTTP server uses."""

_ACCEPTED_AT_ONCE = 32
"""The number of connections to accept before the event loop serves the open ones."""
_PAUSE_S = 0.1
"""How long to accept nothing after the system had no resources for a connection. The listener stays
readable, so the loop would otherwise try again at once, endlessly."""
_TLS_HANDSHAKE_TIMEOUT_S = 10.0


class Acceptor(ABC, Generic[Connection]):
    """Accepts at most ``max_connections``, while more wait in the system's queue. Belongs to one
    event loop."""

    def __init__(
        self, listener: socket.socket, *, max_connections: int, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.server_address = _address(listener.getsockname())
        self._listener = listener
        self._max_connections = max_connections
        self._loop = loop
        self._connections: set[Connection] = set()
        # Only to keep the tasks alive: the event loop holds them by weak references.
        self._openings: set[asyncio.Task[None]] = set()
        self._is_accepting = False
        self._is_stopping = False

    def start(self) -> None:
        """Begin to accept connections. Idempotent; does nothing after :meth:`leave`."""
        if not self._is_accepting and not self._is_stopping:
            self._is_accepting = True
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def leave(self) -> None:
        """Accept nothing more, and close the listening socket. Open connections stay open."""
        self._is_stopping = True
        self._pause()
        self._listener.close()

    def note_end(self, connection: Connection) -> None:
        """The connection is closed."""
        self._connections.discard(connection)
        self.start()

    @abstractmethod
    def _open(self, accepted: socket.socket, peer: Address) -> None:
        """Call :meth:`_connect` with the protocol of a connection that was accepted."""

    def _connect(
        self, connection: Connection, accepted: socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        self._connections.add(connection)
        opening = self._loop.create_task(self._connected(connection, accepted, tls))
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)

    async def _connected(
        self, connection: Connection, accepted: socket.socket, tls: ssl.SSLContext | None
    ) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else _TLS_HANDSHAKE_TIMEOUT_S,
            )
        except OSError:  # the client has disconnected, before there was a connection that could end
            accepted.close()
            self.note_end(connection)

    def _pause(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._listener.fileno())

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            if len(self._connections) >= self._max_connections:
                self._pause()  # until note_end starts again
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
            accepted.settimeout(0)
            self._open(accepted, _address(peer))


def _address(name: tuple[Any, ...]) -> Address:
    """An address of the socket module in the form that the HTTP server uses, without a zone."""
    return str(name[0]).partition("%")[0], str(name[1])
