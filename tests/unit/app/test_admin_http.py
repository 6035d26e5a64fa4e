"""The main process answers a few requests itself, whatever others send to the same port."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from podstead.app.process.acme.responder import answering_challenges
from podstead.app.process.admin import is_private_host
from podstead.app.process.admin_http import MAX_REQUESTS
from podstead.config.value_types import ListenAddress
from tests.support.proxies import free_port
from tests.support.server import DEADLINE_S
from tests.support.waiting import wait_until

PATH = "/.well-known/acme-challenge/token"


@pytest.fixture
def port() -> Iterator[int]:
    """The port of challenges, of which one is published."""
    port = free_port()
    with answering_challenges("127.0.0.1", port) as publish:
        publish(PATH, b"answer")
        yield port


def answer(port: int, path: str = PATH) -> tuple[int, bytes]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        client.request("GET", path)
        response = client.getresponse()
        return response.status, response.read()
    finally:
        client.close()


def test_a_challenge_is_answered_and_nothing_else(port: int) -> None:
    assert answer(port) == (200, b"answer")
    assert answer(port, "/")[0] == 404


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\nX-Slow: "])
def test_silent_connections_keep_nobody_waiting_and_threads_are_few(
    port: int, beginning: bytes
) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        for _ in range(5 * MAX_REQUESTS):
            address = ("127.0.0.1", port)
            silent = stack.enter_context(socket.create_connection(address, DEADLINE_S))
            silent.sendall(beginning)
        for _ in range(5):
            assert answer(port) == (200, b"answer")
        assert threading.active_count() <= before + MAX_REQUESTS
    wait_until(lambda: threading.active_count() <= before, "all threads have ended")


@pytest.mark.parametrize(
    ("listen", "host", "accepted"),
    [
        ("127.0.0.1", "localhost:9090", True),
        ("127.0.0.1", "[::1]:9090", True),
        ("127.0.0.1", "", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "evil", False),
        ("127.0.0.2", "evil.local", False),
        ("::1", "evil.example:9090", False),
        ("10.0.0.5", "evil.example", False),
        ("10.0.0.5", "evil.example:9090", False),
        ("10.0.0.5", "10.0.0.5:9090", True),
        ("10.0.0.5", "10.0.0.5.evil.example", False),
        ("0.0.0.0", "localhost.evil.example", False),
        ("0.0.0.0", "podstead:9090", True),
        ("0.0.0.0", "pods.ns.svc.cluster.local", True),
        ("0.0.0.0", "a@evil.example", False),
        ("0.0.0.0", "evil.example#.local", False),
        ("::", "[fd00::1]:9090", True),
        ("metrics.pods.example", "Metrics.pods.example:9090", True),
        ("metrics.pods.example", "pods.example", False),
    ],
)
def test_no_name_of_somebody_else_reaches_the_private_address(
    listen: str, host: str, accepted: bool
) -> None:
    """A page could read the metrics otherwise (DNS rebinding)."""
    assert is_private_host(host, ListenAddress(listen, 9090)) is accepted
