"""Connections end within their time-outs, and one address cannot take the place of all others."""

from __future__ import annotations

import contextlib
import functools
import select
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.support import http2
from tests.support.listeners import LISTENERS, MakeServer, client_tls, still_open
from tests.support.processes import REPOSITORY
from tests.support.server import (
    DEADLINE_S,
    STUB_START,
    ServerProcess,
    running_server,
)
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.usefixtures("listener"),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere connections are not bounded"),
]

SHORT = ("--header-read-timeout-s", "1", "--body-idle-timeout-s", "1")


@pytest.fixture(scope="module")
def start_shared(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], ServerProcess]]:
    """Start a server with short time-outs for each listener that is asked for, once."""
    with contextlib.ExitStack() as servers:

        @functools.cache
        def start(listener: str) -> ServerProcess:
            folder = tmp_path_factory.mktemp("bounds")
            server = ServerProcess(
                folder / "root",
                (*LISTENERS[listener], *SHORT),
                STUB_START,
                {"STUB_FOLDER": str(folder)},
                tls=None if listener == "http" else client_tls(),
            )
            return servers.enter_context(running_server(server))

        yield start


@pytest.fixture
def server(start_shared: Callable[[str], ServerProcess], listener: str) -> ServerProcess:
    """A server with short time-outs. Its tests only use connections of their own."""
    return start_shared(listener)


def connect(server: ServerProcess, *, source: str = "127.0.0.1") -> socket.socket:
    """A TCP connection, without TLS on any listener."""
    assert server.port is not None
    address = ("127.0.0.1", server.port)
    return socket.create_connection(address, DEADLINE_S, source_address=(source, 0))


def encrypted(
    server: ServerProcess, connection: socket.socket, *, protocol: str = "http/1.1"
) -> socket.socket:
    """The connection with TLS where the listener wants it."""
    if server.tls is None:
        return connection
    context = client_tls()
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(connection, server_hostname="localhost")


def wait_for_end(connection: socket.socket) -> None:
    """Wait until the server has ended a connection, and read nothing."""
    waiting = select.poll()
    waiting.register(connection, select.POLLRDHUP)
    assert waiting.poll(DEADLINE_S * 1000), "the connection is still open"


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError, ssl.SSLEOFError):
        while piece := connection.recv(65_536):
            received += piece
    return received


def get(connection: socket.socket, target: str = "/pid") -> bytes:
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection.recv(65_536)


def test_a_client_that_says_nothing_is_hung_up_on(server: ServerProcess) -> None:
    with connect(server) as silent:
        assert read_to_end(silent) == b""


def test_a_client_that_says_nothing_after_its_handshake_is_hung_up_on(
    server: ServerProcess,
) -> None:
    with encrypted(server, connect(server)) as silent:
        assert read_to_end(silent) == b""


@pytest.mark.parametrize("size_bytes", [1, len(http2.PREFACE) // 2, len(http2.PREFACE) - 1])
def test_half_a_preface_is_not_a_request(server: ServerProcess, size_bytes: int) -> None:
    """RFC 9113 section 3.4."""
    with encrypted(server, connect(server), protocol="h2") as connection:
        connection.sendall(http2.PREFACE[:size_bytes])
        read_to_end(connection)


@pytest.mark.parametrize("request_first", [True, False], ids=["used", "unused"])
def test_pings_do_not_keep_an_idle_connection(
    server: ServerProcess, *, request_first: bool
) -> None:
    """RFC 9113 section 6.7: they prove that a client lives, not that it wants anything."""
    with encrypted(server, connect(server), protocol="h2") as connection:
        request = http2.get("/pid", host="localhost") if request_first else b""
        connection.sendall(http2.PREFACE + http2.SETTINGS + request)
        connection.settimeout(0.2)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            while True:
                try:
                    if not connection.recv(65_536):
                        break
                except TimeoutError:
                    connection.sendall(http2.PING)


def test_a_download_that_nobody_reads_is_given_up(server: ServerProcess) -> None:
    plain = connect(server)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    with encrypted(server, plain) as connection:
        assert b" 200 " in get(connection, "/bytes?100000000")
        wait_for_end(connection)


def test_a_slow_download_that_progresses_is_not_aborted(server: ServerProcess) -> None:
    total = 30_000_000
    plain = connect(server)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    received = 0
    with encrypted(server, plain) as connection, connect(server) as silent:
        received += len(get(connection, f"/bytes?{total}"))
        silent.settimeout(0.01)
        while received < total // 2 and not is_at_its_end(silent):  # which paces the reader
            received += len(connection.recv(65_536))
        assert is_at_its_end(silent)
        assert received < total // 2, "this test is over before the time-out is"
        while received < total:
            piece = connection.recv(65_536)
            assert piece, "the download was cut off"
            received += len(piece)


def is_at_its_end(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_quiet_websockets_and_slow_answers_live_on(server: ServerProcess) -> None:
    with (
        encrypted(server, connect(server)) as quiet,
        encrypted(server, connect(server)) as waiting,
    ):
        quiet.sendall(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert b" 101 " in quiet.recv(1024)
        waiting.sendall(b"GET /hold?released HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.wait_for_line("holding")
        for _ in range(2):
            with connect(server) as silent:
                wait_for_end(silent)
        quiet.sendall(b"\x81\x82\0\0\0\0hi")
        assert quiet.recv(1024) == b"\x81\x02hi"
        (server.root.parent / "released").touch()
        assert b" 200 " in waiting.recv(1024)


# --- the share of one address ---------------------------------------------------------------------


@contextlib.contextmanager
def flood(
    server: ServerProcess, *, count: int, reopened: int = 0, address: str = "127.0.0.2"
) -> Iterator[None]:
    """While so many connections from one address say nothing."""
    arguments = [str(server.port), address, str(count), str(reopened)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.serving.flood", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield
        process.stdin.close()


def test_4200_silent_connections_of_one_address_leave_room_for_others(
    make_server: MakeServer,
) -> None:
    server = make_server("--header-read-timeout-s", "3600")
    server.start()
    with flood(server, count=4200):
        for _ in range(20):
            assert server.get("/pid").status == 200


def test_a_flood_that_comes_back_leaves_room_for_others(make_server: MakeServer) -> None:
    server = make_server("--header-read-timeout-s", "3600", "--max-connections", "400")
    server.start()
    with flood(server, count=2000, reopened=20_000):
        for _ in range(20):
            assert server.get("/pid").status == 200


@pytest.mark.parametrize(("options", "kept"), [((), 5), (("--trusted-proxy", "127.0.0.2"), 8)])
def test_an_address_holds_its_share_unless_it_is_a_trusted_proxy(
    make_server: MakeServer, options: tuple[str, ...], kept: int
) -> None:
    server = make_server(
        *("--max-connections", "20"),
        *("--header-read-timeout-s", "3600"),
        *options,
    )
    server.start()
    with contextlib.ExitStack() as stack:
        used = [stack.enter_context(encrypted(server, connect(server, source="127.0.0.2")))]
        assert b" 200 " in get(used[0])
        unused = [stack.enter_context(connect(server, source="127.0.0.2")) for _ in range(7)]
        more = [stack.enter_context(connect(server, source="127.0.0.3")) for _ in range(6)]
        wait_until(lambda: len(still_open(more)) == 5, "the connection beyond the share ends")
        assert len(still_open(used + unused)) == kept
        assert b" 200 " in get(used[0])
