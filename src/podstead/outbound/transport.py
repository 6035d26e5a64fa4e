"""Sends one request, or opens one WebSocket, to a checked destination.

Only this module uses the HTTP client library. Each exchange has
a connection of its own, pinned to the addresses that the guard has checked. There are no proxies or
netrc files from the environment, no cookies, and no automatic redirects.
"""

from __future__ import annotations

import os
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from yarl import URL

from podstead.outbound.errors import BadStatus, Refused, TooLarge, TooSlow, Unreachable, WrongType
from podstead.outbound.guard import Destination, Guard, address_family
from podstead.outbound.urls import AddressScope

# Loads the HTTP client library without certificates that it would not use.
#
# On import, aiohttp reads the system's certificate authorities twice, for connections without a TLS
# context of their own, which takes a tenth of the time of all imports. Our connections always have
# one (``transport.py``); a connection without it would trust nobody and fail.

_CERTIFICATE_FILE = "SSL_CERT_FILE"
"""The variable that tells OpenSSL where the certificates of the authorities are."""


@contextmanager
def _without_authorities() -> Iterator[None]:
    before = os.environ.get(_CERTIFICATE_FILE)
    os.environ[_CERTIFICATE_FILE] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CERTIFICATE_FILE]
        else:
            os.environ[_CERTIFICATE_FILE] = before


with _without_authorities():
    import aiohttp


_CHUNK_BYTES = 65_536
_HEARTBEAT_S = 30.0
_MAX_MESSAGE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RemoteResponse:
    """A response; its body is read once, from ``chunks``, without decoding."""

    status: int
    headers: Mapping[str, str]
    """Names are case-insensitive; a repeated header has its first value."""
    chunks: AsyncIterator[bytes]


class ClientWebSocket:
    """An open WebSocket (RFC 6455) for text messages. It sends pings and answers them."""

    def __init__(self, socket_: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket_

    async def send(self, text: str) -> None:
        """Send one message. Raises OSError if the connection is lost."""
        await self._socket.send_str(text)

    async def texts(self) -> AsyncIterator[str]:
        """The messages received, until the other end closes or the connection is lost."""
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                yield message.data


@dataclass(frozen=True, slots=True)
class Connector:
    """Opens connections to destinations that the guard has vetted, with sockets that it permits.

    ``timeout_s`` is for connecting, with TLS; the caller limits the time for the response.
    ``prepare`` sets further options of each socket. Everything raises Refused, Unreachable and
    TooSlow.
    """

    guard: Guard
    tls: ssl.SSLContext
    timeout_s: float
    prepare: Callable[[socket.socket], None] = lambda _: None

    @asynccontextmanager
    async def exchange(
        self,
        destination: Destination,
        headers: Mapping[str, str],
        *,
        method: str = "GET",
        content: bytes | None = None,
    ) -> AsyncIterator[RemoteResponse]:
        """Send one request and yield the response while the connection is open."""
        url = URL(destination.target.url, encoded=True)
        async with (
            self._session(destination, headers) as session,
            session.request(method, url, data=content, allow_redirects=False) as response,
        ):
            yield RemoteResponse(
                status=response.status,
                headers=response.headers,
                chunks=response.content.iter_chunked(_CHUNK_BYTES),
            )

    @asynccontextmanager
    async def web_socket(
        self, destination: Destination, headers: Mapping[str, str], *, protocols: Sequence[str]
    ) -> AsyncIterator[ClientWebSocket]:
        """Open a WebSocket at the ``http(s)`` form of its URL and offer the subprotocols. Raises
        BadStatus if the server does not open one."""
        async with (
            self._session(destination, headers) as session,
            session.ws_connect(
                URL(destination.target.url, encoded=True),
                protocols=protocols,
                heartbeat=_HEARTBEAT_S,
                max_msg_size=_MAX_MESSAGE_BYTES,
            ) as opened,
        ):
            yield ClientWebSocket(opened)

    @asynccontextmanager
    async def _session(
        self, destination: Destination, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientSession]:
        """A client for one connection, whose errors are translated to those of this package."""
        gate = _Gate(self, destination.target.reach)
        connector = aiohttp.TCPConnector(
            resolver=_Pinned(destination),
            use_dns_cache=False,
            force_close=True,
            ssl=self.tls,
            socket_factory=gate,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=self.timeout_s),
            headers=headers,
        )
        try:
            async with session:
                yield session
        except aiohttp.WSServerHandshakeError as error:
            raise BadStatus(error.status) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if gate.refused is not None:
                raise gate.refused from error
            if isinstance(error, TimeoutError):
                raise TooSlow from error
            raise Unreachable from error


class _Pinned(aiohttp.abc.AbstractResolver):
    """Resolves the name to the checked addresses, whatever the name servers return by now."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[aiohttp.abc.ResolveResult]:
        return [
            aiohttp.abc.ResolveResult(
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
        """There is nothing to close."""


class _Gate:
    """Creates each socket of the client, when the final address is known.

    The client tries the next address only after an OSError, so a refusal is raised as one and kept
    for the caller.
    """

    def __init__(self, connector: Connector, reach: AddressScope) -> None:
        self._connector = connector
        self._reach = reach
        self.refused: Refused | None = None

    def __call__(self, address_info: aiohttp.AddrInfoType) -> socket.socket:
        try:
            opened = self._connector.guard.open_socket(address_info[4][0], self._reach)
        except Refused as refused:
            self.refused = refused
            raise PermissionError("refused by the guard") from refused
        self._connector.prepare(opened)
        return opened


# Reads the body of a response in chunks, within limits.
#
# The bytes before and after decompression are limited.

_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS


async def read_body(
    chunks: AsyncIterator[bytes],
    *,
    content_coding: str,
    max_wire_bytes: int,
    max_content_bytes: int,
) -> bytes:
    """Read and decode a whole body.

    ``content_coding`` is the Content-Encoding header, empty if there is none. Raises TooLarge,
    WrongType for a coding other than gzip, and Unreachable for a damaged gzip stream.
    """
    coding = content_coding.strip().lower()
    if coding not in ("", "identity", "gzip", "x-gzip"):
        raise WrongType
    inflating = zlib.decompressobj(_GZIP_WINDOW_BITS) if coding.endswith("gzip") else None
    content, wire_bytes = bytearray(), 0
    async for chunk in chunks:
        wire_bytes += len(chunk)
        if wire_bytes > max_wire_bytes:
            raise TooLarge
        content += chunk if inflating is None else _inflated(inflating, chunk, max_content_bytes)
        if len(content) > max_content_bytes:
            raise TooLarge
        if inflating is not None and inflating.unused_data:
            raise Unreachable
    if inflating is not None and not inflating.eof:
        raise Unreachable
    return bytes(content)


def _inflated(inflating: zlib._Decompress, chunk: bytes, max_bytes: int) -> bytes:
    """A part of one gzip member (RFC 1952), which never exceeds the limit plus one byte."""
    if inflating.eof:
        raise Unreachable
    try:
        return inflating.decompress(chunk, max_bytes + 1)
    except zlib.error as error:
        raise Unreachable from error
