"""What the HTTP server itself refuses, at the limit and one past it."""

import socket
from pathlib import Path

import pytest

from podstead.app.process.serve import MAX_HEADER_BYTES
from tests.support.listeners import MakeServer
from tests.support.server import DEADLINE_S, ServerProcess

pytestmark = pytest.mark.usefixtures("listener")


def exchange(server: ServerProcess, request: bytes) -> bytes:
    """The first bytes of the answer to a request as sent."""
    with server.open_socket() as connection:
        connection.sendall(request)
        return connection.recv(1024)


def ask(connection: socket.socket) -> bytes:
    connection.sendall(b"GET /pid HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return connection.recv(1024)


def read_to_end(connection: socket.socket) -> None:
    """Read until the server closes; with TLS it must say that it does."""
    while connection.recv(1024):
        pass


@pytest.mark.parametrize(("excess_bytes", "status"), [(0, b"200"), (1, b"431")])
def test_headers_up_to_the_limit_are_taken(
    make_server: MakeServer, excess_bytes: int, status: bytes
) -> None:
    server = make_server()
    server.start()
    empty = b"GET /pid HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n"
    padding = b"a" * (MAX_HEADER_BYTES - len(empty) + excess_bytes)
    answer = exchange(server, empty.replace(b"X: ", b"X: " + padding))
    assert answer.startswith(b"HTTP/1.1 " + status)


def test_a_client_that_sends_no_headers_in_time_is_hung_up_on(make_server: MakeServer) -> None:
    server = make_server("--header-read-timeout-s", "1")
    server.start()
    with server.open_socket() as connection:
        connection.sendall(b"GET /pid HTTP/1.1\r\n")
        read_to_end(connection)  # an answer (408) may come first


def test_connections_beyond_the_limit_wait(make_server: MakeServer) -> None:
    server = make_server("--max-connections", "1")
    server.start()
    with server.open_socket() as first, server.open_socket() as late:
        assert ask(first)
        late.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(late)
        first.close()
        late.settimeout(DEADLINE_S)
        assert ask(late).startswith(b"HTTP/1.1 200")


def test_a_body_of_many_megabytes_goes_through(make_server: MakeServer) -> None:
    server = make_server()
    server.start()
    assert server.request("PUT", "/body", b"x" * 20_000_000).text == "20000000"


def test_the_limit_of_open_files_is_no_lower_than_it_has_to_be(make_server: MakeServer) -> None:
    server = make_server()
    server.own_interpreter = True
    server.start()
    limits = Path(f"/proc/{server.get('/pid').text}/limits").read_text(encoding="ascii")
    soft, hard = next(
        line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files")
    )
    assert soft == hard
