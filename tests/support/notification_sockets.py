"""What applications that watch over solid-0.1 do: subscribe, write, and see what they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.application import BASE, Server
from tests.support.asgi_sockets import Socket, connected

PROTOCOL = "solid-0.1"
SENTINEL = "/bob/public/sentinel"
TURTLE = "text/turtle"


@asynccontextmanager
async def watching(
    server: Server, *topics: str, token_of: str | None = "alice", peer: str = "127.0.0.1"
) -> AsyncIterator[Socket]:
    """A socket of somebody (``None`` for nobody) with subscriptions that were granted."""
    headers = {}
    if token_of is not None:
        headers["Authorization"] = getattr(server, token_of).authorization
    async with connected(
        server.application, protocols=[PROTOCOL], headers=headers, peer=peer
    ) as socket:
        assert await socket.receive() == f"protocol {PROTOCOL}"
        for topic in topics:
            await socket.send(f"sub {BASE}{topic}")
            assert await socket.receive() == f"ack {BASE}{topic}"
        yield socket


async def heard(server: Server, socket: Socket) -> list[str]:
    """All lines up to now: a change of something else is heard after them, and left out."""
    await socket.send(f"sub {BASE}{SENTINEL}")
    lines = []
    while (line := await socket.receive()) != f"ack {BASE}{SENTINEL}":
        lines.append(line)
    answer = await server.bob.put(SENTINEL, "<> a <#s>.", TURTLE)
    assert answer.status in (201, 204)
    while (line := await socket.receive()) != f"pub {BASE}{SENTINEL}":
        lines.append(line)
    await socket.send(f"unsub {BASE}{SENTINEL}")
    return lines


def pubs(*topics: str) -> list[str]:
    """The lines that tell of changes of these."""
    return [f"pub {BASE}{topic}" for topic in topics]
