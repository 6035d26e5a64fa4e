"""How the TLS listener treats clients and an HTTP server that do not behave, all in one process.

The HTTP server is a plain one of asyncio, told by each test what to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podstead.app.process.certificate import read_key_pair
from podstead.app.process.tls import relay, terminator
from podstead.app.process.tls.engine import ServerContext, TlsConnection
from podstead.app.process.tls.front import TlsFrontend, private_folder
from podstead.app.process.tls.terminator import Clients, Terminator
from podstead.config import Settings
from tests.support.listeners import CERTIFICATE, KEY, client_tls
from tests.support.server import DEADLINE_S

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LARGE_BYTES = 20_000_000


@dataclass
class Stage:
    """A terminator before an HTTP server that a test plays."""

    folder: Path
    context: ServerContext
    port: int = 0
    clients: Clients = field(default_factory=dict)
    terminator: Terminator | None = None
    http_server: asyncio.Server | None = None
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    handled: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    """The names of the connections to the HTTP server, one when each has come to its end."""

    async def open(self, handle: Handle, *, max_connections: int = 100) -> None:
        inner = self.folder / "http"
        inner.unlink(missing_ok=True)

        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            name = writer.get_extra_info("peername")
            with contextlib.suppress(OSError):
                await handle(reader, writer)
            writer.close()
            self.handled.put_nowait(name)

        self.http_server = await asyncio.start_unix_server(note, inner)
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self.terminator = Terminator(
            *(listener, TlsFrontend(self.context, self.folder), inner),
            max_connections=max_connections,
            clients=self.clients,
            loop=asyncio.get_running_loop(),
        )
        self.terminator.start()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        streams = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=client_tls(), server_hostname="localhost"
        )
        self.writers.append(streams[1])
        return streams

    async def connect_plainly(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Without a handshake."""
        streams = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(streams[1])
        return streams

    async def drained(self) -> None:
        assert self.terminator is not None
        self.terminator.stop()
        await self.terminator.drained()

    async def close(self) -> None:
        """End it whatever is still going on."""
        assert self.terminator is not None
        assert self.http_server is not None
        for writer in self.writers:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        self.terminator.stop()
        self.terminator.abort()
        await self.terminator.drained()
        self.http_server.close()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    pair = read_key_pair(Settings(ssl_cert=CERTIFICATE, ssl_key=KEY))
    assert pair is not None
    with private_folder("webid-tls") as folder:
        stage = Stage(folder, ServerContext(pair))
        yield stage
        await stage.close()
    pair.forget()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


async def wait_for_end(reader: asyncio.StreamReader) -> None:
    """Until the other side has closed, however it does."""
    try:
        while await reader.read(65536):
            pass
    except OSError:
        return


@dataclass(frozen=True)
class ByHand:
    """A client that does its TLS itself, and so can do it badly."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO

    def tamper(self) -> None:
        """Say something that is changed on its way."""
        self.tls.write(b"hello")
        record = bytearray(self.outgoing.read())
        record[-1] ^= 1
        self.writer.write(bytes(record))


async def connected_by_hand(stage: Stage) -> ByHand:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_tls().wrap_bio(incoming, outgoing, server_hostname="localhost")
    reader, writer = await stage.connect_plainly()
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            incoming.write(await reader.read(65536))
        else:
            writer.write(outgoing.read())
            return ByHand(reader, writer, tls, incoming, outgoing)


async def test_every_connection_has_a_name_of_its_own(stage: Stage) -> None:
    async def say_name(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(writer.get_extra_info("peername").encode())

    await stage.open(say_name)
    names = []
    for _ in range(5):
        reader, writer = await stage.connect()
        name = (await reader.read()).decode()
        assert stage.clients[name].address == tuple(
            str(part) for part in writer.get_extra_info("sockname")
        )
        names.append(name)
        writer.close()
    assert len(set(names)) == 5
    assert {path.name for path in stage.folder.iterdir()} == {"http"}


async def test_what_both_sides_say_at_once_goes_through_unchanged(stage: Stage) -> None:
    await stage.open(echo)
    reader, writer = await stage.connect()
    sent = bytes(range(256)) * (LARGE_BYTES // 256)
    writer.write(sent)
    assert await reader.readexactly(len(sent)) == sent
    writer.close()
    await stage.drained()


async def test_a_handshake_that_takes_too_long_is_aborted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "HANDSHAKE_TIMEOUT_S", 0.05)
    await stage.open(echo)
    reader, _writer = await stage.connect_plainly()
    await wait_for_end(reader)
    assert stage.handled.empty()


async def test_handshakes_count_as_connections(stage: Stage) -> None:
    """So the number of those in flight is bounded; more wait in the queue of the system."""
    await stage.open(echo, max_connections=2)
    idle = [await stage.connect_plainly() for _ in range(2)]
    waiting = asyncio.create_task(stage.connect())
    done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done
    idle[0][1].close()
    _reader, writer = await waiting
    writer.close()


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01"])
async def test_anything_but_tls_does_not_reach_the_http_server(
    stage: Stage, garbage: bytes
) -> None:
    await stage.open(echo)
    reader, writer = await stage.connect_plainly()
    writer.write(garbage)
    writer.write_eof()
    await wait_for_end(reader)
    writer.close()
    await stage.drained()
    assert stage.handled.empty()


async def test_a_record_that_was_tampered_with_ends_the_connection(stage: Stage) -> None:
    await stage.open(echo)
    client = await connected_by_hand(stage)
    client.tamper()
    await wait_for_end(client.reader)
    client.writer.close()
    await stage.handled.get()


async def test_such_a_client_need_not_read_for_its_connection_to_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    written_bytes = 0

    async def pour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written_bytes
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()
            written_bytes += 10_000

    monkeypatch.setattr(relay, "LINGER_S", 0.05)
    await stage.open(pour)
    client = await connected_by_hand(stage)
    before = -1
    while before != written_bytes:  # until nothing moves any more
        before = written_bytes
        await asyncio.sleep(0.3)
    client.tamper()
    await stage.handled.get()
    assert not client.reader.at_eof()


async def test_a_client_for_which_tls_has_to_answer_all_the_time_is_hung_up_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As to one change of keys after the other (RFC 8446 section 4.6.3): it may read no answer."""
    await stage.open(echo)
    client = await connected_by_hand(stage)
    monkeypatch.setattr(TlsConnection, "taken", lambda _: b"x" * relay.MAX_ANSWERED_BYTES)
    for _ in range(2):
        client.tls.write(b"hello")
        client.writer.write(client.outgoing.read())
        await client.reader.readexactly(relay.MAX_ANSWERED_BYTES)
    await wait_for_end(client.reader)
    await stage.handled.get()


async def test_a_client_that_cannot_be_introduced_is_hung_up_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_shown: object) -> dict[str, object]:
        raise KeyError("what a library raises")

    monkeypatch.setattr(terminator, "describe", fail)
    await stage.open(echo)
    reader, _writer = await stage.connect()
    await wait_for_end(reader)
    await stage.drained()
    assert stage.handled.empty()


async def test_the_end_that_a_client_says_reaches_the_http_server_which_still_answers(
    stage: Stage,
) -> None:
    async def answer_in_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())  # until the end

    await stage.open(answer_in_the_end)
    client = await connected_by_hand(stage)
    client.tls.write(b"all of it")
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()  # close_notify, and the other side's is awaited
    client.writer.write(client.outgoing.read())
    client.incoming.write(await client.reader.read())
    assert client.tls.read(100) == b"all of it"
    client.tls.unwrap()  # the server has said so as well
    client.writer.close()
    await stage.drained()


async def test_the_end_of_an_answer_is_said_as_tls_wants_it(stage: Stage) -> None:
    """Else nobody could tell it from a connection that was cut (RFC 8446 section 6.1)."""

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 100_000)

    await stage.open(answer)

    def read_to_end() -> bytes:
        plain = socket.create_connection(("127.0.0.1", stage.port), DEADLINE_S)
        with client_tls().wrap_socket(
            plain, server_hostname="localhost", suppress_ragged_eofs=False
        ) as connection:
            return b"".join(iter(lambda: connection.recv(65536), b""))

    assert await asyncio.to_thread(read_to_end) == b"x" * 100_000


@pytest.mark.parametrize("way", ["reset", "cut"])
async def test_a_client_that_vanishes_ends_the_connection_to_the_http_server(
    stage: Stage, way: str
) -> None:
    await stage.open(echo)
    _reader, writer = await stage.connect()
    writer.write(b"hello")
    await writer.drain()
    if way == "reset":
        writer.transport.abort()
    else:
        descriptor = socket.dup(writer.get_extra_info("socket").fileno())
        with socket.socket(fileno=descriptor) as connection:
            connection.shutdown(socket.SHUT_WR)  # without a word of TLS
    await stage.handled.get()
    writer.transport.abort()
    await stage.drained()


async def test_a_client_that_sends_all_before_it_reads_still_gets_an_early_answer(
    stage: Stage,
) -> None:
    """As for a body that is too large. A connection closed at once would be reset, and take the
    answer back (RFC 9112 section 9.6)."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"no more, please")

    await stage.open(refuse)

    def send_and_read() -> bytes:
        plain = socket.create_connection(("127.0.0.1", stage.port), DEADLINE_S)
        with client_tls().wrap_socket(plain, server_hostname="localhost") as connection:
            connection.sendall(b"x" * LARGE_BYTES)
            return connection.recv(100)

    assert await asyncio.to_thread(send_and_read) == b"no more, please"


async def test_a_client_is_known_for_a_while_after_its_end_and_then_forgotten(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last requests may still be on their way to the application."""
    await stage.open(echo)
    _reader, writer = await stage.connect()
    writer.close()
    name = await stage.handled.get()
    await stage.drained()
    assert name in stage.clients
    await stage.close()
    monkeypatch.setattr(terminator, "_MEMORY_S", 0.01)
    await stage.open(echo)
    stage.clients.clear()
    _reader, writer = await stage.connect()
    writer.close()
    await stage.handled.get()
    while stage.clients:  # noqa: ASYNC110 - a timer of the loop empties it
        await asyncio.sleep(0.01)


async def test_a_client_that_does_not_read_makes_the_http_server_wait(stage: Stage) -> None:
    written_bytes = 0

    async def pour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written_bytes
        for _ in range(LARGE_BYTES // 10_000):
            writer.write(b"x" * 10_000)
            await writer.drain()
            written_bytes += 10_000

    await stage.open(pour)
    reader, writer = await stage.connect()
    await reader.readexactly(1)
    before = -1
    while before != written_bytes:  # until nothing moves any more
        before = written_bytes
        await asyncio.sleep(0.3)
    assert written_bytes < LARGE_BYTES
    assert len(await reader.read(-1)) + 1 == LARGE_BYTES
    writer.close()


async def test_an_http_server_that_does_not_read_makes_the_client_wait(stage: Stage) -> None:
    go_on = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        size_bytes = 0
        while size_bytes < LARGE_BYTES:
            size_bytes += len(await reader.read(65536))
        writer.write(b"all")

    await stage.open(wait)
    reader, writer = await stage.connect()
    sent_bytes = 0

    async def send() -> None:
        nonlocal sent_bytes
        for _ in range(LARGE_BYTES // 10_000):
            writer.write(b"x" * 10_000)
            await writer.drain()
            sent_bytes += 10_000

    sending = asyncio.create_task(send())
    before = -1
    while before != sent_bytes:  # until nothing moves any more
        before = sent_bytes
        await asyncio.sleep(0.3)
    assert sent_bytes < LARGE_BYTES
    go_on.set()
    assert await reader.read() == b"all"
    await sending


async def test_a_stop_takes_nothing_new_and_lets_what_is_under_way_come_to_its_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "HANDSHAKE_TIMEOUT_S", 3600.0)
    monkeypatch.setattr(terminator, "QUIET_S", 3600.0)
    go_on = asyncio.Event()

    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        await go_on.wait()
        writer.write(b"late")

    await stage.open(answer_late)
    shaking = await stage.connect_plainly()
    reader, writer = await stage.connect()
    writer.write(b"x")
    drained = asyncio.create_task(stage.drained())
    await wait_for_end(shaking[0])
    with pytest.raises(OSError, match=r".*"):
        await stage.connect_plainly()
    assert not drained.done()
    go_on.set()
    assert await reader.read() == b"late"
    writer.close()
    await drained


async def test_what_the_http_server_leaves_open_is_closed_in_the_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it leaves WebSockets until its process ends, which waits for this."""
    monkeypatch.setattr(terminator, "QUIET_S", 0.01)
    monkeypatch.setattr(relay, "LINGER_S", 0.01)

    async def say_and_stay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"said")
        await wait_for_end(reader)

    await stage.open(say_and_stay)
    reader, _ = await stage.connect()
    assert await reader.read(4) == b"said"
    await stage.drained()
    assert await reader.read() == b""
