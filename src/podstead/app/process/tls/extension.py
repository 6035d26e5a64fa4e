"""How does the application get the client's certificate? In the ASGI TLS extension.

The HTTP server behind the listener only knows the name of the Unix socket of a connection. For
every request, this module replaces that name with the client's address, its certificate and the TLS
parameters. A connection without such a name is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from podstead.app.process.tls.engine import Handshake

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Address = tuple[str, str]
"""A host and a port, both as text, in the form that the HTTP server uses."""

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
