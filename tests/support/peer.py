"""What the outbound tests stand on: a misbehaving HTTP peer, a moved clock, scripted name answers.

The peer is a plain asyncio server on a port chosen by the system. It counts connections before any
byte is read, so a test can show that a refused fetch never got there.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path

from podstead.outbound.fetch import Fetcher, trusted_certificates
from podstead.outbound.foreign_documents import FetchPolicy, OutboundLimits, Purpose
from podstead.outbound.guard import Guard, Resolver
from podstead.outbound.urls import IPAddress, Origin, UrlRules
from tests.support.clock import FakeClock

TLS_FOLDER = Path(__file__).parent / "outbound_tls"
AUTHORITY_FILE = TLS_FOLDER / "authority.pem"

PATIENT = FetchPolicy(
    purpose=Purpose.WEB_ID,
    accept="text/turtle",
    content_types=frozenset({"text/turtle"}),
    max_wire_bytes=4096,
    max_content_bytes=8192,
    connect_timeout_s=600,
    total_timeout_s=600,
)
"""A policy whose time limits no busy machine reaches."""

HASTY = replace(PATIENT, total_timeout_s=0.05)
HASTY_TO_CONNECT = replace(PATIENT, connect_timeout_s=0.05)
"""For peers that never finish: whatever the machine does meanwhile, the time is over in the end."""

FOLLOWING = replace(PATIENT, max_redirects=3, cross_origin_redirects=True)
"""A policy that follows redirects like profiles do (A-189)."""


@dataclass(frozen=True)
class Request:
    """A request as the peer read it."""

    path: str
    headers: Mapping[str, str]


Reply = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(
    status: str = "200 OK",
    *headers: str,
    body: bytes = b"<#a> <#b> <#c> .",
    content_type: str = "text/turtle",
) -> Reply:
    """A complete, well-formed answer."""
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        *headers,
    )
    return raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def redirect(location: str, status: str = "302 Found") -> Reply:
    """An answer that sends the client elsewhere."""
    return answer(status, f"Location: {location}", body=b"")


def raw(message: bytes) -> Reply:
    """Exactly these bytes, then the end of the connection."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(message)
        await writer.drain()

    return reply


def stalled(start: bytes = b"") -> Reply:
    """The first bytes, then nothing more, with the connection open."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        await asyncio.Event().wait()

    return reply


def endless(start: bytes, repeated: bytes) -> Reply:
    """A beginning, then the same bytes until the client goes away."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(repeated)
            await writer.drain()

    return reply


@dataclass
class Gate:
    """Answers only once opened, and says when requests have come in."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    peak: int = 0
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def reply(self, writer: asyncio.StreamWriter) -> None:
        """Hold the request until the gate opens."""
        async with self._arrived:
            self.waiting += 1
            self.peak = max(self.peak, self.waiting)
            self._arrived.notify_all()
        await self.opened.wait()
        self.waiting -= 1
        await answer()(writer)

    async def arrivals(self, count: int) -> None:
        """Wait until this many requests are held at once."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self.waiting >= count)


class Peer:
    """A foreign HTTP server: replies by path, 404 elsewhere."""

    def __init__(self, host: str = "127.0.0.1", *, secure: bool = False) -> None:
        self.host = host
        self.port = 0
        self.connections = 0
        self.requests: list[Request] = []
        self.replies: dict[str, Reply] = {}
        self._secure = secure
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()

    def url(self, path: str = "/", *, host: str = "localhost") -> str:
        """A URL at this peer."""
        return f"{'https' if self._secure else 'http'}://{host}:{self.port}{path}"

    async def start(self, port: int = 0) -> None:
        """Listen; on a port of the system's choice unless one is given."""
        self._server = await asyncio.start_server(self._accept, self.host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Closing alone waits until the client ends TLS as well, which may be after the loop's end.
        for writer in self._open:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._open.add(writer)
        # A client that gives up resets the connection, or fails the handshake: that is its right.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._converse(reader, writer)
        writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._secure:
            await writer.start_tls(_server_tls())
        request_line, *header_lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        path = request_line.split(" ")[1]
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in header_lines if line)
        }
        self.requests.append(Request(path, headers))
        await self.replies.get(path, answer("404 Not Found"))(writer)


def _server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem")
    return context


class ScriptedResolver:
    """Answers each look-up of a name with the next scripted answer; the last one stays."""

    def __init__(self, names: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._names = {host: list(answers) for host, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """Every address of the name. Raises OSError if it is not scripted."""
        self.asked.append(host)
        answers = self._names.get(host)
        if answers is None:
            raise OSError("Name or service not known")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ip_address(address) for address in addresses]


class StalledResolver:
    """A name server that never answers."""

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """Wait for ever."""
        await asyncio.Event().wait()
        raise OSError(host)


@dataclass
class Deployment:
    """Builds fetchers for a deployment and closes them."""

    clock: FakeClock = field(default_factory=FakeClock)
    _built: list[Fetcher] = field(default_factory=list)

    def fetcher(
        self,
        *,
        loopback: bool = True,
        names: Resolver | None = None,
        own_origins: frozenset[Origin] = frozenset(),
        private_origins: frozenset[Origin] = frozenset(),
        limits: OutboundLimits | None = None,
        extra_ca_file: Path | None = None,
    ) -> Fetcher:
        """A fetcher in a loopback deployment (A-190), or in a strict one."""
        guard = Guard(
            UrlRules(
                own_origins=own_origins,
                private_origins=private_origins,
                loopback_allowed=loopback,
            ),
            names or ScriptedResolver({}),
        )
        tls = trusted_certificates()
        if extra_ca_file is not None:
            tls.load_verify_locations(cafile=extra_ca_file)
        fetcher = Fetcher(
            guard,
            self.clock,
            tls=tls,
            limits=limits or OutboundLimits(),
        )
        self._built.append(fetcher)
        return fetcher

    async def close(self) -> None:
        """Stop what is under way."""
        for fetcher in self._built:
            await fetcher.close()
