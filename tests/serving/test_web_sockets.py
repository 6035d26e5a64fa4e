"""WebSockets pass every listener alike (RFC 6455)."""

import base64
import hashlib
import os
import socket
import struct
from collections.abc import Callable

import pytest

from tests.support.listeners import MakeServer, sockets_port
from tests.support.server import ServerProcess

pytestmark = pytest.mark.usefixtures("listener")

TEXT, CLOSE = 0x1, 0x8
FIN = 0x80
MASKED = 0x80


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


def send(connection: socket.socket, opcode: int, payload: bytes) -> None:
    mask = os.urandom(4)
    length = struct.pack("!BBQ", FIN | opcode, MASKED | 127, len(payload))
    masked = bytes(each ^ mask[index % 4] for index, each in enumerate(payload))
    connection.sendall(length + mask + masked)


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


def test_messages_go_both_ways_until_one_side_closes(open_socket: Open) -> None:
    server, connect = open_socket
    with connect() as connection:
        upgrade(connection)
        for text in (b"hello", b"x" * 100_000, b""):
            send(connection, TEXT, text)
            assert receive(connection) == (TEXT, text)
        send(connection, CLOSE, struct.pack("!H", 1000))
        assert receive(connection)[0] == CLOSE
    assert server.get("/pid").status == 200
    assert server.stop() == 0
    assert server.errors == ""


def test_an_open_web_socket_does_not_hold_the_server(open_socket: Open) -> None:
    server, connect = open_socket
    with connect() as connection:
        upgrade(connection)
        send(connection, TEXT, b"hello")
        assert receive(connection) == (TEXT, b"hello")
        assert server.stop() == 0
