"""WebSockets to a server process, by aiohttp's client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp

from tests.support.server import DEADLINE_S, ServerProcess
from tests.support.workers import worker_with_connection

_MAX_SOCKETS = 200
PROTOCOL = "solid-0.1"


@dataclass(frozen=True)
class LiveSocket:
    """One socket that speaks solid-0.1."""

    connection: aiohttp.ClientWebSocketResponse
    local_port: int
    server_port: int

    async def receive(self) -> str:
        """The next line; fails when the socket is closed."""
        async with asyncio.timeout(DEADLINE_S):
            return await self.connection.receive_str()

    async def receive_until(self, last: str) -> list[str]:
        """All lines up to this one, which is left out."""
        lines = []
        while (line := await self.receive()) != last:
            lines.append(line)
        return lines

    async def subscribe(self, *urls: str) -> None:
        """Subscribe to what may be read."""
        for url in urls:
            await self.connection.send_str(f"sub {url}")
            assert await self.receive() == f"ack {url}"

    async def closed(self) -> int | None:
        """The code with which the server closes the socket; ``None`` for none."""
        async with asyncio.timeout(DEADLINE_S):
            while (message := await self.connection.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
        # What the server said, not what became of the client's answer to it.
        closing = message.type is aiohttp.WSMsgType.CLOSE
        return int(message.data) if closing else self.connection.close_code


@asynccontextmanager
async def sockets_to(
    server: ServerProcess, *, count: int = 1, token: str | None = None
) -> AsyncIterator[Sequence[LiveSocket]]:
    """Open sockets, each greeted."""
    async with aiohttp.ClientSession() as session:
        yield [await _open(session, server, token) for _ in range(count)]


@asynccontextmanager
async def socket_to(
    server: ServerProcess, *topics: str, token: str | None = None
) -> AsyncIterator[LiveSocket]:
    """An open socket with subscriptions that were granted; ``topics`` are paths."""
    async with sockets_to(server, token=token) as [socket]:
        await socket.subscribe(*(f"{server.base_url}{topic}" for topic in topics))
        yield socket


@asynccontextmanager
async def sockets_to_every_worker(
    server: ServerProcess, *, workers: int, token: str | None = None
) -> AsyncIterator[dict[int, LiveSocket]]:
    """One open socket to each worker, by the worker's process."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        found: dict[int, LiveSocket] = {}
        for _ in range(_MAX_SOCKETS):
            socket = await _open(session, server, token)
            worker = worker_with_connection(server, socket.server_port, socket.local_port)
            if worker in found:
                await socket.connection.close()
            found.setdefault(worker, socket)
            if len(found) == workers:
                break
        assert len(found) == workers
        yield found


def _address(server: ServerProcess) -> str:
    """Where clients find the socket, at an address of this machine that both families have."""
    named = server.request("OPTIONS", "/x").headers["updates-via"]
    return named.replace("//localhost:", "//127.0.0.1:", 1)


async def _open(
    session: aiohttp.ClientSession, server: ServerProcess, token: str | None
) -> LiveSocket:
    connection = await session.ws_connect(
        await asyncio.to_thread(_address, server),
        protocols=[PROTOCOL],
        headers={} if token is None else {"Authorization": f"Bearer {token}"},
    )
    local_port: int = connection.get_extra_info("sockname")[1]
    server_port: int = connection.get_extra_info("peername")[1]
    socket = LiveSocket(connection, local_port, server_port)
    assert await socket.receive() == f"protocol {PROTOCOL}"
    return socket
