"""The TLS listener of one worker, which tells the application about the client of each connection.

The HTTP server listens on a Unix socket in a private folder. Each connection to it comes from a
socket with a unique name, which is never reused and by which the application identifies the client
(port numbers would be reused, possibly while requests of an earlier connection are still in
progress). For every request, that name is replaced with the client's address, its certificate and
the TLS parameters, in the ASGI TLS extension. A connection without such a name is refused.
"""

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podstead.app.process.accepting import Acceptor, Address
from podstead.app.process.tls.engine import Handshake
from podstead.app.process.tls.front import TlsFrontend
from podstead.app.process.tls.relay import ClientHalf, ServerHalf
from podstead.web.asgi import Application, Receive, Scope, Send

logger = logging.getLogger("podstead.app")

_UNVERIFIED = "Not verified by a certificate authority: certificates of all issuers are accepted"
_SCHEMES = {"http": "https", "websocket": "wss"}


@dataclass(frozen=True, slots=True)
class TlsClient:
    """The client of a connection."""

    address: Address
    server_address: Address
    tls: dict[str, object]
    """The part of the scope that the extension defines."""


Clients = dict[str, TlsClient]
"""The clients by the name of the Unix socket that connects to the HTTP server."""


def describe(handshake: Handshake) -> dict[str, object]:
    """The TLS extension of ASGI, version 0.2, for one connection."""
    return {
        "server_cert": handshake.server_certificate,
        "client_cert_chain": handshake.chain,
        "client_cert_name": handshake.name,
        "client_cert_error": _UNVERIFIED if handshake.chain else None,
        "tls_version": handshake.version,
        "cipher_suite": handshake.cipher,
    }


class WithClientScope:
    """The application, with the client's address and certificate in each scope."""

    def __init__(self, application: Application, clients: Clients) -> None:
        self._application = application
        self._clients = clients

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "lifespan":
            return self._application(scope, receive, send)
        client = self._clients.get(scope["client"][0])
        if client is None:
            return _refuse(scope, send)
        scope["client"] = client.address
        scope["server"] = client.server_address
        scope["scheme"] = _SCHEMES[scope["type"]]
        # A new mapping, since all requests may share the existing one.
        scope["extensions"] = {**scope["extensions"], "tls": client.tls}
        return self._application(scope, receive, send)


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await send({"type": "http.response.start", "status": 421, "headers": []})
    await send({"type": "http.response.body", "body": b""})


QUIET_S = 1.0
"""The time between two checks for connections on which nothing more will be sent."""
_RETRY_S = 0.01
"""How long to wait while the HTTP server's queue is full."""
_MEMORY_S = 10.0
"""How long to keep the name of a closed connection, whose last requests may still be on their way
to the application."""


class Terminator(Acceptor[ClientHalf]):
    """Accepts TLS connections, and passes each on to the HTTP server."""

    def __init__(
        self,
        listener: socket.socket,
        front: TlsFrontend,
        inner: Path,
        *,
        max_connections: int,
        clients: Clients,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """New connections use the context that ``front`` has at that time. ``inner`` is the path
        of the HTTP server's socket; nothing else uses its folder."""
        super().__init__(listener, max_connections=max_connections, loop=loop)
        self._front = front
        self._inner = str(inner)
        self._folder = f"{inner.parent}/"
        self._clients = clients
        self._numbers = itertools.count()
        self._is_empty = asyncio.Event()

    def stop(self) -> None:
        """Accept nothing more. Handshakes in progress are aborted; requests are finished."""
        self.leave()
        for connection in [each for each in self._connections if each.is_shaking_hands]:
            connection.abort()

    def abort(self) -> None:
        """Close every connection at once."""
        for connection in list(self._connections):
            connection.abort()

    async def drained(self) -> None:
        """Wait until everything has been sent and every connection is closed.

        By now the HTTP server has sent all responses. It may still leave connections open until its
        process ends, such as those of WebSockets: they are closed here.
        """
        while self._connections:
            self._is_empty.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(QUIET_S):
                    await self._is_empty.wait()
            for connection in [each for each in self._connections if each.has_sent_all]:
                connection.finish()

    def _open(self, accepted: socket.socket, peer: Address) -> None:
        tls = self._front.context.connection()
        self._connect(ClientHalf(self._loop, tls, self, peer), accepted)

    async def admit(self, client: ClientHalf, handshake: Handshake) -> ServerHalf:
        name = f"{self._folder}{next(self._numbers)}"
        # Stored before the connection exists, so that no request can reach the application first.
        self._clients[name] = TlsClient(client.address, self.server_address, describe(handshake))
        server = ServerHalf(client, lambda: self._forget(name))
        try:
            connection = await self._inner_connection(name)
            await self._loop.create_unix_connection(lambda: server, sock=connection)
        except OSError:
            self._clients.pop(name, None)
            if not self._is_stopping:
                logger.exception("A connection could not be passed on to the HTTP server")
            raise
        return server

    async def _inner_connection(self, name: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(0)
            _give_name(connection, name)
            while True:
                try:
                    connection.connect(self._inner)
                except BlockingIOError:
                    # The queue of the Unix socket is full, and connect(2) has nothing to wait on.
                    await asyncio.sleep(_RETRY_S)
                else:
                    return connection
        except OSError:
            connection.close()
            raise

    def _forget(self, name: str) -> None:
        self._loop.call_later(_MEMORY_S, self._clients.pop, name, None)

    def note_end(self, connection: ClientHalf) -> None:
        super().note_end(connection)
        if not self._connections:
            self._is_empty.set()


def _give_name(connection: socket.socket, name: str) -> None:
    connection.bind(name)
    # The socket keeps its name without the file. (A path object takes longer than the system call.)
    os.unlink(name)  # noqa: PTH108
