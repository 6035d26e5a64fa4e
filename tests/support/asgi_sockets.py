"""WebSockets to the application in this process, message for message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from podstead.web.application import Application
from podstead.web.asgi import Message, Scope


class Refused(Exception):
    """The handshake was answered in HTTP."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status, body)
        self.status = status
        self.headers = headers
        self.body = body


class Closed(Exception):
    """The server has closed the socket."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code


@dataclass
class Socket:
    """The client's end of one socket."""

    protocol: str | None = None
    """The sub-protocol that the server chose."""
    stalled: bool = False
    """Whether the client takes nothing from now on."""
    _to_server: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)
    _to_client: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)
    _resumed: asyncio.Event = field(default_factory=asyncio.Event)

    def resume(self) -> None:
        """Take again what the server sends."""
        self.stalled = False
        self._resumed.set()

    async def send(self, message: str | bytes) -> None:
        key = "text" if isinstance(message, str) else "bytes"
        await self._to_server.put({"type": "websocket.receive", key: message})

    async def receive(self) -> str:
        """The next message. Raises Closed."""
        message = await self._to_client.get()
        if message["type"] == "websocket.close":
            raise Closed(message["code"], message["reason"])
        assert message["type"] == "websocket.send"
        text: str = message["text"]
        return text

    async def receive_all(self, count: int) -> list[str]:
        """The next messages, as many as told."""
        return [await self.receive() for _ in range(count)]

    def leave(self) -> None:
        """Go, as a client does whose connection ends."""
        self._to_server.put_nowait({"type": "websocket.disconnect", "code": 1005})

    # --- the server's side --------------------------------------------------------------------

    async def _take(self, message: Message) -> None:
        if self.stalled and message["type"] == "websocket.send":
            await self._resumed.wait()
        await self._to_client.put(message)

    async def _handshake(self) -> None:
        """Wait until the server has decided. Raises Refused."""
        message = await self._to_client.get()
        if message["type"] == "websocket.accept":
            self.protocol = message["subprotocol"]
            return
        body = await self._to_client.get()
        fields = [(name.decode(), value.decode()) for name, value in message["headers"]]
        names = [name for name, _ in fields]
        assert len(set(names)) == len(names), "the server takes each field once"
        raise Refused(message["status"], dict(fields), body["body"])


@asynccontextmanager
async def connected(
    application: Application,
    target: str = "/.notifications",
    *,
    host: str = "localhost:3000",
    protocols: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    peer: str = "127.0.0.1",
    certificate: str | None = None,
) -> AsyncIterator[Socket]:
    """An open socket, on a connection with a client certificate if one is given in PEM. Raises
    Refused."""
    socket = Socket()
    path, _, query = target.partition("?")
    fields = {"Host": host, **(headers or {})}
    scope: Scope = {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(n.lower().encode(), v.encode()) for n, v in fields.items()],
        "client": (peer, "12345"),
        "server": ("127.0.0.1", "0"),
        "subprotocols": list(protocols),
        "extensions": {
            "websocket.http.response": {},
            "tls": {"client_cert_chain": [certificate] if certificate else []},
        },
    }
    socket._to_server.put_nowait({"type": "websocket.connect"})
    serving = asyncio.create_task(application(scope, socket._to_server.get, socket._take))
    try:
        await socket._handshake()
        yield socket
        socket.leave()
        await serving
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
