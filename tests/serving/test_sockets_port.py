"""The port for WebSockets: framing, limits and refusals (RFC 6455), and what clients are told."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from podstead.app.process.sockets.listener import MAX_MESSAGE_BYTES
from tests.support.client import Pod, create_pod
from tests.support.features import LEFT_OUT
from tests.support.listeners import MakeServer, sockets_port, still_open
from tests.support.processes import becomes_readable
from tests.support.server import DEADLINE_S, STUB_START, ServerProcess, running_server
from tests.support.waiting import wait_until

TEXT, BINARY, CLOSE, PING, PONG, MORE = 0x1, 0x2, 0x8, 0x9, 0xA, 0x0
FIN = 0x80
MASKED = 0x80


@dataclass(frozen=True)
class Ports:
    """A server and its port for WebSockets."""

    server: ServerProcess
    port: int

    def connect(self, source: str = "") -> socket.socket:
        return socket.create_connection(
            ("127.0.0.1", self.port), DEADLINE_S, source_address=(source, 0)
        )

    @contextlib.contextmanager
    def opened(self) -> Iterator[socket.socket]:
        """A connection that has become a WebSocket."""
        with self.connect() as connection:
            connection.sendall(handshake())
            assert read_head(connection).startswith("HTTP/1.1 101 ")
            yield connection


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """A server that sends back what it gets, with short time-outs."""
    folder = tmp_path_factory.mktemp("sockets")
    options = ("--sockets-port", "0", "--header-read-timeout-s", "1", "--body-idle-timeout-s", "1")
    server = ServerProcess(folder / "root", options, STUB_START, {"STUB_FOLDER": str(folder)})
    with running_server(server):
        yield Ports(server, sockets_port(server))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """The server itself."""
    root = tmp_path_factory.mktemp("sockets") / "root"
    options = ("--sockets-port", "0", "--sockets-per-address", "3")
    with running_server(ServerProcess(root, options)) as server:
        yield Ports(server, sockets_port(server))


def handshake(
    path: str = "/socket", *, host: str = "localhost", method: str = "GET", more: str = ""
) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        f"{more}\r\n"
    ).encode()


def read_head(connection: socket.socket) -> str:
    """An answer up to its body."""
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        piece = connection.recv(1)
        if not piece:
            break
        answer += piece
    return answer.decode()


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    mask = os.urandom(4)
    head = struct.pack("!BBQ", opcode | (FIN if fin else 0), MASKED | 127, len(payload))
    if len(payload) < 126:
        head = struct.pack("!BB", opcode | (FIN if fin else 0), MASKED | len(payload))
    elif len(payload) < 65536:
        head = struct.pack("!BBH", opcode | (FIN if fin else 0), MASKED | 126, len(payload))
    return head + mask + bytes(each ^ mask[index % 4] for index, each in enumerate(payload))


def receive(connection: socket.socket) -> tuple[int, bytes]:
    first, length = read(connection, 2)
    if length == 126:
        (length,) = struct.unpack("!H", read(connection, 2))
    elif length == 127:
        (length,) = struct.unpack("!Q", read(connection, 8))
    return first & 0xF, read(connection, length)


def read(connection: socket.socket, size_bytes: int) -> bytes:
    data = b""
    while len(data) < size_bytes:
        piece = connection.recv(size_bytes - len(data))
        assert piece, "the server closed the connection"
        data += piece
    return data


def close_code(connection: socket.socket) -> int:
    opcode, payload = receive(connection)
    assert opcode == CLOSE
    (code,) = struct.unpack("!H", payload[:2])
    assert connection.recv(1) == b"", "the server closes the connection (section 7.1.1)"
    return int(code)


def wait_for_end(connection: socket.socket) -> None:
    waiting = select.poll()
    waiting.register(connection, select.POLLRDHUP)
    assert waiting.poll(DEADLINE_S * 1000), "the connection is still open"


# --- framing ----------------------------------------------------------------------------------


def test_a_message_in_fragments_is_one_message(echo: Ports) -> None:
    """Section 5.4; control frames may come in between."""
    with echo.opened() as connection:
        connection.sendall(frame(TEXT, b"so", fin=False) + frame(MORE, b"", fin=False))
        connection.sendall(frame(PING, b"there?") + frame(MORE, b"lid"))
        assert receive(connection) == (PONG, b"there?")
        assert receive(connection) == (TEXT, b"solid")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(TEXT, b"\xff"), 1007),
        (frame(MORE, b"x"), 1002),
        (struct.pack("!BB", FIN | TEXT, 1) + b"x", 1002),
        (frame(0x3, b"x"), 1002),
        (frame(TEXT, b"x" * (MAX_MESSAGE_BYTES + 1)), 1009),
        (frame(CLOSE, struct.pack("!H", 4000)), 4000),
    ],
    ids=["not UTF-8", "no beginning", "not masked", "unknown opcode", "too large", "closed"],
)
def test_what_violates_the_protocol_ends_the_socket(echo: Ports, sent: bytes, code: int) -> None:
    """Section 7.4.1."""
    with echo.opened() as connection:
        connection.sendall(sent)
        assert close_code(connection) == code


# --- handshakes that are refused --------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 426),
        (handshake(method="POST"), 405),
        (handshake().replace(b"Version: 13", b"Version: 8"), 400),
        (handshake(more=f"X: {'x' * 9000}\r\n"), 431),
    ],
    ids=["no handshake", "POST", "another version", "a long field"],
)
def test_anything_else_gets_an_answer_in_http(echo: Ports, sent: bytes, status: int) -> None:
    with echo.connect() as connection:
        connection.sendall(sent)
        assert read_head(connection).startswith(f"HTTP/1.1 {status} ")
        wait_for_end(connection)


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [("/.notifications", "evil.example", 421), ("/alice/", None, 404), ("/%zz", None, 400)],
)
def test_the_application_refuses_as_on_the_ordinary_port(
    real: Ports, path: str, host: str | None, status: int
) -> None:
    with real.connect() as connection:
        connection.sendall(handshake(path, host=host or f"localhost:{real.port}"))
        answer = read_head(connection)
        assert answer.startswith(f"HTTP/1.1 {status} ")
        assert "x-content-type-options: nosniff" in answer.lower()


@pytest.mark.feature("legacy_notifications")
def test_an_address_has_a_limit_over_both_ports(real: Ports) -> None:
    """N-31."""
    ports = [real.server.port, real.port, real.port]
    with contextlib.ExitStack() as opened:
        for port in ports:
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(handshake("/.notifications", host=f"localhost:{port}"))
            assert read_head(connection).startswith("HTTP/1.1 101 ")
        with real.connect() as one_more:
            one_more.sendall(handshake("/.notifications", host=f"localhost:{real.port}"))
            answer = read_head(one_more)
        assert answer.startswith("HTTP/1.1 429 ")
        assert "retry-after: " in answer.lower()
    # The places are free again when the server has noticed that the clients are gone.
    wait_until(lambda: _opens(real), "a free place")


def _opens(real: Ports) -> bool:
    with real.connect() as connection:
        connection.sendall(handshake("/.notifications", host=f"localhost:{real.port}"))
        return read_head(connection).startswith("HTTP/1.1 101 ")


# --- clients that do nothing ------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"", b"GET /socket HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_handshake_has_its_time(echo: Ports, said: bytes) -> None:
    with echo.connect() as silent:
        silent.sendall(said)
        wait_for_end(silent)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere connections are not bounded")
@pytest.mark.parametrize("sent", [frame(TEXT, b"x" * 60_000), frame(PING, b"x" * 120) * 500])
def test_a_client_that_never_reads_is_aborted_and_takes_no_memory(echo: Ports, sent: bytes) -> None:
    """The server stops reading, so the client's sends block."""
    with echo.opened() as connection:
        connection.settimeout(0.2)
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(sent)
        connection.settimeout(DEADLINE_S)
        wait_for_end(connection)


def test_a_quiet_socket_stays_open(echo: Ports) -> None:
    with echo.opened() as connection:
        for _ in range(2):
            with echo.connect() as silent:
                wait_for_end(silent)
        connection.sendall(frame(TEXT, b"hi"))
        assert receive(connection) == (TEXT, b"hi")


def test_connections_beyond_the_limit_wait(make_server: MakeServer) -> None:
    """``max-connections`` holds for this port as for the other."""
    options = ("--sockets-port", "0", "--max-connections", "8", "--trusted-proxy", "127.0.0.1")
    server = make_server(*options)
    server.start()
    ports = Ports(server, sockets_port(server))
    with contextlib.ExitStack() as others:
        [first, *_] = [others.enter_context(ports.opened()) for _ in range(8)]
        with ports.connect() as waiting:
            waiting.sendall(handshake())
            assert not becomes_readable(waiting, 0.2)
            first.close()
            assert read_head(waiting).startswith("HTTP/1.1 101 ")
    with contextlib.ExitStack() as others:
        silent = [others.enter_context(ports.connect("127.0.0.2")) for _ in range(8)]
        wait_until(lambda: len(still_open(silent)) == 2, "an address holds no more than its share")
        others.enter_context(ports.opened())


# --- where clients are sent -------------------------------------------------------------------


def pod_of(real: Ports) -> Pod:
    return create_pod(real.server)


def channel(pod: Pod, topic: str) -> dict[str, str]:
    body = {
        "@context": ["https://www.w3.org/ns/solid/notification/v1"],
        "type": "http://www.w3.org/ns/solid/notifications#WebSocketChannel2023",
        "topic": f"{pod.server.base_url}{topic}",
    }
    with pod.owner() as owner:
        path = "/.notifications/WebSocketChannel2023/"
        answer = owner.request(
            "POST", path, json.dumps(body), {"Content-Type": "application/ld+json"}
        )
    assert answer.status == 200
    described: dict[str, str] = json.loads(answer.body)
    return described


def test_clients_are_sent_to_the_port(real: Ports) -> None:
    """L-1, N-20."""
    pod = pod_of(real)
    if "legacy_notifications" not in LEFT_OUT:
        with pod.owner() as owner:
            answer = owner.head(pod.root)
        assert answer.headers["updates-via"] == f"ws://localhost:{real.port}/.notifications"
    address = channel(pod, f"{pod.root}public/")["receiveFrom"]
    assert address.startswith(f"ws://localhost:{real.port}/.notifications/")
    with real.connect() as connection, pod.owner() as owner:
        _, _, host, path = address.split("/", 3)
        connection.sendall(handshake(f"/{path}", host=host))
        assert read_head(connection).startswith("HTTP/1.1 101 ")
        assert owner.put(f"{pod.root}public/x", "x", "text/plain").status == 201
        opcode, payload = receive(connection)
    assert opcode == TEXT
    assert json.loads(payload)["type"] == "Add"


@pytest.mark.feature("legacy_notifications")
def test_a_proxy_may_route_sockets_of_the_base_url_to_the_port(make_server: MakeServer) -> None:
    server = make_server(
        *("--base-url", "https://pods.example", "--sockets-port", "0"),
        *("--sockets-url", "https://pods.example/"),
    )
    server.command = (*STUB_START[:-3], "-m", "podstead.cli", "start")
    server.port = 0
    server.launch()
    server.wait_for_line("  listening")
    port = sockets_port(server)
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as connection:
        connection.sendall(handshake("/.notifications", host="pods.example"))
        assert read_head(connection).startswith("HTTP/1.1 101 ")


# --- at every listener -------------------------------------------------------------------------


def upgrade(connection: socket.socket) -> None:
    """Section 4, checked as a client has to."""
    key = base64.b64encode(os.urandom(16))
    connection.sendall(
        b"GET /socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
    )
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += connection.recv(1)
    expected = base64.b64encode(
        hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    )
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert expected in answer


@pytest.fixture(params=["http", "sockets-port"])
def open_socket(
    make_server: MakeServer, request: pytest.FixtureRequest
) -> tuple[ServerProcess, Callable[[], socket.socket]]:
    """A started server, and what connects to the listener for its sockets."""
    options = () if request.param == "http" else ("--sockets-port", "0")
    server = make_server("--drain-timeout-s", "3600", *options)
    server.start()
    port = sockets_port(server) if options else None
    return server, lambda: server.open_socket(port)


Open = tuple[ServerProcess, Callable[[], socket.socket]]


@pytest.mark.usefixtures("listener")
def test_messages_go_both_ways_until_one_side_closes(open_socket: Open) -> None:
    server, connect = open_socket
    with connect() as connection:
        upgrade(connection)
        for text in (b"hello", b"x" * 100_000, b""):
            connection.sendall(frame(TEXT, text))
            assert receive(connection) == (TEXT, text)
        connection.sendall(frame(CLOSE, struct.pack("!H", 1000)))
        assert receive(connection)[0] == CLOSE
    assert server.get("/pid").status == 200
    assert server.stop() == 0
    assert server.errors == ""


@pytest.mark.usefixtures("listener")
def test_an_open_web_socket_does_not_hold_the_server(open_socket: Open) -> None:
    server, connect = open_socket
    with connect() as connection:
        upgrade(connection)
        connection.sendall(frame(TEXT, b"hello"))
        assert receive(connection) == (TEXT, b"hello")
        assert server.stop() == 0
