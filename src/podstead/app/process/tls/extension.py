"""How does the application learn who a client is? By the ASGI TLS extension, as from any server.

The HTTP server behind the listener knows a connection by the name of its Unix socket only. Here
that name is replaced, for every request, by what stands behind it: the client's address, its
certificate, and that the connection is protected. Whoever reaches the HTTP server without such a
name is refused.
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
"""A host and a port, both in text, as the HTTP server gives them."""

_UNVERIFIED = "No certificate authority was asked: certificates of all issuers are taken"
_SCHEMES = {"http": "https", "websocket": "wss"}


@dataclass(frozen=True, slots=True)
class TlsClient:
    """Who is at the other end of a connection."""

    address: Address
    server_address: Address
    tls: dict[str, object]
    """The extension's own part of the scope."""


Clients = dict[str, TlsClient]
"""By the name of the Unix socket from which the HTTP server is reached."""


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


class Introduced:
    """The application, to which clients are introduced."""

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
        # A new mapping: the one that is there may be shared by all requests.
        scope["extensions"] = {**scope["extensions"], "tls": client.tls}
        return self._application(scope, receive, send)


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await send({"type": "http.response.start", "status": 421, "headers": []})
    await send({"type": "http.response.body", "body": b""})
