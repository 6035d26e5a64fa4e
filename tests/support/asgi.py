"""A client that calls the ASGI application in this process, header for header and byte for byte.

It adds nothing of its own but a Host, so tests see exactly what the application does with exactly
what was sent: repeated headers, raw paths, bodies in pieces, bodies that stop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podstead.web.application import Application
from podstead.web.asgi import Message, Scope


@dataclass
class Answer:
    """One response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    pieces: list[bytes] = field(default_factory=list)
    file_path: str | None = None

    def header(self, name: str) -> str | None:
        """The one value of a header; fails if there are several lines of it."""
        values = self.header_lines(name)
        assert len(values) <= 1, f"{name} stands on {len(values)} lines"
        return values[0] if values else None

    def header_lines(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name.lower()]

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:  # noqa: ANN401 - whatever was sent
        return json.loads(self.body)


class Client:
    """Makes requests; holds the credential of one agent or of nobody."""

    def __init__(
        self,
        application: Application,
        *,
        host: str,
        token: str | None = None,
        certificate: str | None = None,
    ) -> None:
        self.application = application
        self._host = host
        self._token = token
        self._certificate = certificate

    def with_token(self, token: str | None) -> Client:
        return Client(self.application, host=self._host, token=token)

    def with_certificate(self, pem: str) -> Client:
        """The same agent on a connection with a client certificate."""
        return Client(self.application, host=self._host, token=self._token, certificate=pem)

    def asking(self, application: Application) -> Client:
        """The same agent, asking another server of the same name."""
        return Client(
            application, host=self._host, token=self._token, certificate=self._certificate
        )

    @property
    def authorization(self) -> str:
        """The Authorization header of an agent."""
        assert self._token is not None, "the public has none"
        return f"Bearer {self._token}"

    async def request(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: bytes | Iterable[bytes] | AsyncIterator[bytes] | None = None,
        content_length: int | None = None,
        disconnect: bool = False,
        http_version: str = "1.1",
        peer: str = "127.0.0.1",
    ) -> Answer:
        """Send a request; ``body`` pieces arrive one by one, ``disconnect`` cuts after them. Of
        those that are made while they are sent, the ``content_length`` must be told, if any."""
        later = body if isinstance(body, AsyncIterator) else None
        pieces: list[bytes] = []
        if isinstance(body, bytes):
            pieces = [body]
        elif not isinstance(body, AsyncIterator):
            pieces = list(body or [])
        fields = list(headers.items() if isinstance(headers, Mapping) else headers)
        names = {name.lower() for name, _ in fields}
        length = content_length
        if length is None and pieces and "transfer-encoding" not in names:
            length = sum(map(len, pieces))
        if length is not None and "content-length" not in names:
            fields.append(("Content-Length", str(length)))
        scope = self.scope(method, target, fields, http_version=http_version, peer=peer)
        incoming = _later(later) if later else _messages(pieces, disconnect=disconnect)
        return await self._exchange(scope, incoming)

    def scope(
        self,
        method: str,
        target: str,
        fields: Sequence[tuple[str, str]] = (),
        *,
        http_version: str = "1.1",
        peer: str = "127.0.0.1",
    ) -> Scope:
        """A request as the server hands it over, with the agent's credential."""
        fields = list(fields)
        names = {name.lower() for name, _ in fields}
        if "host" not in names:
            fields.append(("Host", self._host))
        if self._token is not None and "authorization" not in names:
            fields.append(("Authorization", self.authorization))
        path, _, query = target.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": http_version,
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in fields],
            "client": (peer, "12345"),
            "server": ("127.0.0.1", "0"),
            "extensions": (
                {"tls": {"client_cert_chain": [self._certificate]}} if self._certificate else {}
            ),
        }

    async def _exchange(self, scope: Scope, incoming: AsyncIterator[Message]) -> Answer:
        answer = Answer(0, [])

        async def receive() -> Message:
            return await anext(incoming)

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = [
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in message["headers"]
                ]
            elif message["type"] == "http.response.body" and message.get("body"):
                answer.pieces.append(message["body"])

        await self.application(scope, receive, send)
        answer.body = b"".join(answer.pieces)
        return answer

    async def get(self, target: str, **headers: str) -> Answer:
        return await self.request("GET", target, headers=_named(headers))

    async def head(self, target: str, **headers: str) -> Answer:
        return await self.request("HEAD", target, headers=_named(headers))

    async def delete(self, target: str, **headers: str) -> Answer:
        return await self.request("DELETE", target, headers=_named(headers))

    async def put(
        self, target: str, body: bytes | str | None, content_type: str | None, **headers: str
    ) -> Answer:
        return await self._send("PUT", target, body, content_type, headers)

    async def post(
        self, target: str, body: bytes | str | None, content_type: str | None, **headers: str
    ) -> Answer:
        return await self._send("POST", target, body, content_type, headers)

    async def _send(
        self,
        method: str,
        target: str,
        body: bytes | str | None,
        content_type: str | None,
        headers: Mapping[str, str],
    ) -> Answer:
        fields = _named(headers)
        if content_type is not None:
            fields["Content-Type"] = content_type
        content = body.encode() if isinstance(body, str) else body
        return await self.request(method, target, headers=fields, body=content)


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    """Keyword arguments as header names: ``if_match`` is ``If-Match``."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


async def _messages(pieces: list[bytes], *, disconnect: bool) -> AsyncIterator[Message]:
    for index, piece in enumerate(pieces):
        more = disconnect or index < len(pieces) - 1
        yield {"type": "http.request", "body": piece, "more_body": more}
    if not pieces and not disconnect:
        yield {"type": "http.request", "body": b"", "more_body": False}
    if not disconnect:
        await asyncio.Event().wait()  # the client stays until it has its answer
    while True:
        yield {"type": "http.disconnect"}


async def _later(pieces: AsyncIterator[bytes]) -> AsyncIterator[Message]:
    async for piece in pieces:
        yield {"type": "http.request", "body": piece, "more_body": True}
    yield {"type": "http.request", "body": b"", "more_body": False}
    await asyncio.Event().wait()
