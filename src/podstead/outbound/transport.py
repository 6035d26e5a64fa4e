"""How is one request sent to a checked destination? The only file that knows the HTTP client.

Each exchange has a connection of its own, pinned to the addresses that the guard checked. Nothing
is inherited from the environment: no proxy, no netrc, no cookie, no redirect followed by itself.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from podstead.outbound.errors import Refused, TooSlow, Unreachable
from podstead.outbound.guard import Destination, address_family

OpenSocket = Callable[[str, int], socket.socket]
"""Makes the socket for an address and port about to be connected to. Raises Refused."""

_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and headers of an answer; the body is read once, from ``chunks``, undecoded."""

    status: int
    headers: Mapping[str, str]
    """Names compare without regard to case; of a repeated header the first value counts."""
    chunks: AsyncIterator[bytes]


@asynccontextmanager
async def exchange(
    destination: Destination,
    *,
    headers: Mapping[str, str],
    connect_timeout_s: float,
    open_socket: OpenSocket,
    tls: ssl.SSLContext,
    method: str = "GET",
    content: bytes | None = None,
) -> AsyncIterator[Answer]:
    """Send one request and hand out the answer while the connection stays open.

    Raises Refused when ``open_socket`` does, Unreachable, and TooSlow when connecting takes longer
    than ``connect_timeout_s``; the time for the answer is the caller's to limit.
    """
    gate = _Gate(open_socket)
    connector = aiohttp.TCPConnector(
        resolver=_Pinned(destination),
        use_dns_cache=False,
        force_close=True,
        ssl=tls,
        socket_factory=gate,
    )
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=connect_timeout_s),
        headers=headers,
    )
    try:
        async with (
            session,
            session.request(
                method,
                URL(destination.target.url, encoded=True),
                data=content,
                allow_redirects=False,
            ) as response,
        ):
            yield Answer(
                status=response.status,
                headers=response.headers,
                chunks=response.content.iter_chunked(_CHUNK_BYTES),
            )
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        if gate.refused is not None:
            raise gate.refused from error
        if isinstance(error, TimeoutError):
            raise TooSlow from error
        raise Unreachable from error


class _Pinned(AbstractResolver):
    """Answers with the checked addresses, whatever the name servers say by now."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=address_family(address),
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in self._destination.addresses
            if family in (socket.AF_UNSPEC, address_family(address))
        ]

    async def close(self) -> None:
        """Nothing is open."""


class _Gate:
    """Stands where each connection of the client gets its socket, with the final address.

    The client goes on to the next address only after an OSError, so a refusal is shown to it as
    one and kept for the caller.
    """

    def __init__(self, open_socket: OpenSocket) -> None:
        self._open_socket = open_socket
        self.refused: Refused | None = None

    def __call__(self, address_info: aiohttp.AddrInfoType) -> socket.socket:
        host, port = address_info[4][:2]
        try:
            return self._open_socket(host, port)
        except Refused as refused:
            self.refused = refused
            raise PermissionError("refused by the guard") from refused
