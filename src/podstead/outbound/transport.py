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
from podstead.outbound.guard import Destination, address_family

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


OpenSocket = Callable[[str], socket.socket]
"""Creates the socket for a connection to an address. Raises Refused."""

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
) -> AsyncIterator[RemoteResponse]:
    """Send one request and yield the response while the connection is open.

    Raises Refused if ``open_socket`` does, Unreachable, and TooSlow if connecting takes longer than
    ``connect_timeout_s``. The caller limits the time for the response.
    """
    async with (
        _connecting(
            destination,
            headers=headers,
            connect_timeout_s=connect_timeout_s,
            open_socket=open_socket,
            tls=tls,
        ) as session,
        session.request(
            method,
            URL(destination.target.url, encoded=True),
            data=content,
            allow_redirects=False,
        ) as response,
    ):
        yield RemoteResponse(
            status=response.status,
            headers=response.headers,
            chunks=response.content.iter_chunked(_CHUNK_BYTES),
        )


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


@asynccontextmanager
async def open_web_socket(
    destination: Destination,
    *,
    headers: Mapping[str, str],
    protocols: Sequence[str],
    connect_timeout_s: float,
    open_socket: OpenSocket,
    tls: ssl.SSLContext,
) -> AsyncIterator[ClientWebSocket]:
    """Open a WebSocket at the ``http(s)`` form of its URL and offer the subprotocols.

    Raises BadStatus if the server does not open one, and what :func:`exchange` raises.
    """
    async with (
        _connecting(
            destination,
            headers=headers,
            connect_timeout_s=connect_timeout_s,
            open_socket=open_socket,
            tls=tls,
        ) as session,
        session.ws_connect(
            URL(destination.target.url, encoded=True),
            protocols=protocols,
            heartbeat=_HEARTBEAT_S,
            max_msg_size=_MAX_MESSAGE_BYTES,
        ) as opened,
    ):
        yield ClientWebSocket(opened)


@asynccontextmanager
async def _connecting(
    destination: Destination,
    *,
    headers: Mapping[str, str],
    connect_timeout_s: float,
    open_socket: OpenSocket,
    tls: ssl.SSLContext,
) -> AsyncIterator[aiohttp.ClientSession]:
    """A client for one connection, whose errors are translated to those of this package."""
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

    def __init__(self, open_socket: OpenSocket) -> None:
        self._open_socket = open_socket
        self.refused: Refused | None = None

    def __call__(self, address_info: aiohttp.AddrInfoType) -> socket.socket:
        host = address_info[4][0]
        try:
            return self._open_socket(host)
        except Refused as refused:
            self.refused = refused
            raise PermissionError("refused by the guard") from refused


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
    sink = _sink(content_coding.strip().lower(), max_content_bytes)
    wire_bytes = 0
    async for chunk in chunks:
        wire_bytes += len(chunk)
        if wire_bytes > max_wire_bytes:
            raise TooLarge
        sink.feed(chunk)
    return sink.finish()


class _Identity:
    """Accepts a body without a content coding."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._content = bytearray()

    def feed(self, chunk: bytes) -> None:
        if len(self._content) + len(chunk) > self._max_bytes:
            raise TooLarge
        self._content += chunk

    def finish(self) -> bytes:
        return bytes(self._content)


class _Gunzip:
    """Decompresses one gzip member (RFC 1952); its output never exceeds the limit plus one byte."""

    def __init__(self, max_bytes: int) -> None:
        self._identity = _Identity(max_bytes)
        self._max_bytes = max_bytes
        self._inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)

    def feed(self, chunk: bytes) -> None:
        if self._inflate.eof:
            raise Unreachable
        try:
            inflated = self._inflate.decompress(chunk, self._max_bytes + 1)
        except zlib.error as error:
            raise Unreachable from error
        self._identity.feed(inflated)
        if self._inflate.unused_data:
            raise Unreachable

    def finish(self) -> bytes:
        if not self._inflate.eof:
            raise Unreachable
        return self._identity.finish()


def _sink(coding: str, max_content_bytes: int) -> _Identity | _Gunzip:
    if coding in ("", "identity"):
        return _Identity(max_content_bytes)
    if coding in ("gzip", "x-gzip"):
        return _Gunzip(max_content_bytes)
    raise WrongType
