"""A proxy before a server that loses what is sent, as a network does that drops packets.

Connections that were open meanwhile stay open, and nothing ever comes back over them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

_PIECE_BYTES = 64 * 1024


@dataclass
class LossyProxy:
    """Passes on bytes in both directions. For one event loop."""

    port: int = 0
    _is_cut: bool = False
    _open: set[_Connection] = field(default_factory=set)
    _asked: asyncio.Condition = field(default_factory=asyncio.Condition)

    def cut(self) -> None:
        """Lose everything from now on."""
        self._is_cut = True
        for each in self._open:
            each.is_lost = True

    def restore(self) -> None:
        """Pass on what comes over new connections."""
        self._is_cut = False

    async def lose(self, connections: int) -> None:
        """Wait until something was lost on so many of them."""
        async with self._asked:
            await self._asked.wait_for(
                lambda: sum(each.has_lost for each in self._open) >= connections
            )

    async def serve(
        self, target_port: int, client: asyncio.StreamReader, back: asyncio.StreamWriter
    ) -> None:
        server, there = await asyncio.open_connection("127.0.0.1", target_port)
        connection = _Connection((back, there), is_lost=self._is_cut)
        self._open.add(connection)
        await asyncio.gather(
            self._pass_on(client, there, connection), self._pass_on(server, back, connection)
        )

    async def end(self) -> None:
        """Close all connections."""
        for each in self._open:
            for end in each.ends:
                end.transport.abort()
                with suppress(ConnectionError):
                    await end.wait_closed()

    async def _pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        try:
            while piece := await source.read(_PIECE_BYTES):
                if connection.is_lost:
                    connection.has_lost = True
                    async with self._asked:
                        self._asked.notify_all()
                else:
                    target.write(piece)
                    await target.drain()
            if not connection.is_lost:
                target.close()
        except ConnectionError:
            target.close()


@dataclass(eq=False)
class _Connection:
    ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    is_lost: bool
    has_lost: bool = False


@asynccontextmanager
async def running_lossy_proxy(target_port: int) -> AsyncIterator[LossyProxy]:
    """A proxy before a port of this machine."""
    proxy = LossyProxy()
    server = await asyncio.start_server(
        lambda client, back: proxy.serve(target_port, client, back), "127.0.0.1", 0
    )
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()
