"""A receiver of webhooks that answers as it is told, and may misbehave; in this event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

DEADLINE_S = 60

Misbehaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Does something with the connection instead of answering properly."""


@dataclass(frozen=True)
class Delivered:
    """One POST as it came."""

    target: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - whatever was sent
        return json.loads(self.body)


@dataclass
class Receiver:
    """Answers 200 unless ``answers`` holds something else for the next requests: a status, or what
    to do with the connection."""

    port: int = 0
    answers: list[int | Misbehaviour] = field(default_factory=list)
    _came: asyncio.Queue[Delivered] = field(default_factory=asyncio.Queue)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/hook"

    async def next(self) -> Delivered:
        """The next POST, whether or not it was answered well."""
        return await asyncio.wait_for(self._came.get(), DEADLINE_S)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing came that was not looked at."""
        return self._came.empty()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            request_line, *lines = head.rstrip().split("\r\n")
            headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, target, _ = request_line.split(" ")
            assert method == "POST"
            answer = self.answers.pop(0) if self.answers else 200
            self._came.put_nowait(Delivered(target, headers, body))
            if isinstance(answer, int):
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % answer)
                await writer.drain()
            else:
                await answer(writer)
        writer.close()


async def closing(_: asyncio.StreamWriter) -> None:
    """Close without an answer."""


async def sending_nonsense(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\x01\x02\r\n\r\n")


async def answering_without_end(writer: asyncio.StreamWriter) -> None:
    """A good status, and a body of which there is always more."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await writer.drain()


def redirecting_to(url: str) -> Misbehaviour:
    async def redirect(writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 307 X\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()

    return redirect


@asynccontextmanager
async def running_receiver() -> AsyncIterator[Receiver]:
    """A receiver on a port of its own."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
