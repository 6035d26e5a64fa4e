"""Responses that last, from the application in this process: heard piece by piece, then left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from podstead.web.asgi import Message
from tests.support.asgi import Client

DEADLINE_S = 60


class Stream:
    """One response while it comes."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._left = asyncio.Event()
        self._begun = asyncio.Event()

    async def begin(self) -> None:
        """Wait for the status."""
        await asyncio.wait_for(self._begun.wait(), DEADLINE_S)

    async def piece(self) -> bytes | None:
        """The next piece, ``None`` at the end of the response."""
        return await asyncio.wait_for(self._pieces.get(), DEADLINE_S)

    def leave(self) -> None:
        """Close the connection."""
        self._left.set()

    async def receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {n.decode(): v.decode() for n, v in message["headers"]}
            self._begun.set()
        elif message["type"] == "http.response.body":
            if message.get("body"):
                self._pieces.put_nowait(message["body"])
            if not message.get("more_body"):
                self._pieces.put_nowait(None)


@dataclass(frozen=True)
class Event:
    """One Server-Sent Event as a browser dispatches it."""

    type: str
    data: str
    last_id: str

    def json(self) -> Any:  # noqa: ANN401 - whatever was sent
        return json.loads(self.data)


class EventReader:
    """Reads a stream as a browser's EventSource does (WHATWG HTML, section 9.2.6)."""

    def __init__(self, stream: Stream, last_id: str = "") -> None:
        self.stream = stream
        self.last_id = last_id
        self.comments = 0
        self._lines: list[str] = []
        self._rest = ""

    async def next(self) -> Event | None:
        """The next event, ``None`` when the stream has ended."""
        while True:
            event = self._dispatched()
            if event is not None:
                return event
            piece = await self.stream.piece()
            if piece is None:
                return None
            *lines, self._rest = (self._rest + piece.decode()).split("\n")
            self._lines += lines

    def _dispatched(self) -> Event | None:
        while "" in self._lines:
            end = self._lines.index("")
            block, self._lines = self._lines[:end], self._lines[end + 1 :]
            data, kind = [], "message"
            for line in block:
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if name == "data":
                    data.append(value)
                elif name == "event":
                    kind = value
                elif name == "id":
                    self.last_id = value
                elif name == "":
                    self.comments += 1
            if data:
                return Event(kind, "\n".join(data), self.last_id)
        return None


@asynccontextmanager
async def opened(
    client: Client, target: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Stream]:
    """Ask for a response that lasts, and leave in the end."""
    stream = Stream()
    scope = client.scope("GET", target, list((headers or {}).items()))
    task = asyncio.create_task(client.application(scope, stream.receive, stream.send))
    try:
        await stream.begin()
        yield stream
    finally:
        stream.leave()
        await asyncio.wait_for(task, DEADLINE_S)
