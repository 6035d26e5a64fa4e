"""Which connections are closed, and which addresses shut out, without a clock or a socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.app.process.connections.kernel import (
    MAX_BLOCKED,
    Descriptors,
    PacketFilter,
    Peer,
    read_name,
)
from podstead.app.process.connections.policy import (
    BLOCK_S,
    SIGNIFICANT_BYTES,
    Bounds,
    Connection,
    Requests,
    Sent,
    Shares,
)
from podstead.app.process.connections.supervisor import client_network
from podstead.web.asgi import Receive, Scope, Send
from tests.support.server import DEADLINE_S
from tests.support.waiting import wait_until

BOUNDS = Bounds(connections=10, per_address=3, idle_timeout_s=30, stall_timeout_s=20)


def silent(since_s: float = 0, *, holder: str | None = "a") -> Connection:
    return Connection(holder, since_s)


def used(since_s: float = 0, *, begun: int = 1, ended: int = 1) -> Connection:
    connection = silent(since_s)
    connection.note_requests((begun, ended), now_s=since_s)
    return connection


# --- time-outs ------------------------------------------------------------------------------------


def test_a_connection_without_a_request_is_idle_from_its_beginning() -> None:
    connection = silent(5)
    assert not connection.is_idle(BOUNDS, now_s=35)
    assert connection.is_idle(BOUNDS, now_s=35.1)


def test_a_request_that_came_and_went_between_two_looks_is_a_sign_of_life() -> None:
    connection = silent()
    connection.note_requests((1, 1), now_s=20)
    connection.note_requests((1, 1), now_s=40)
    assert not connection.is_idle(BOUNDS, now_s=50)
    assert connection.is_idle(BOUNDS, now_s=50.1)


def test_a_request_in_flight_is_never_idle() -> None:
    connection = silent()
    connection.note_requests((5, 4), now_s=1)
    assert not connection.is_idle(BOUNDS, now_s=10_000)
    connection.note_requests((5, 5), now_s=10_000)
    assert not connection.is_idle(BOUNDS, now_s=10_030)


def test_a_response_that_is_being_taken_keeps_a_connection() -> None:
    """The application has handed it over, so that no request is in flight any more."""
    connection = used()
    for now_s in range(0, 1000, 10):
        connection.note_sent(Sent(is_pending=True, acknowledged_bytes=now_s), now_s=now_s)
        assert not connection.is_idle(BOUNDS, now_s=now_s)
        assert not connection.is_stalled(BOUNDS, now_s=now_s)


@pytest.mark.parametrize(("taken", "is_idle"), [(SIGNIFICANT_BYTES - 1, True), (10**6, False)])
def test_reading_a_little_of_a_response_does_not_complete_it(taken: int, *, is_idle: bool) -> None:
    """The answers to pings, say."""
    connection = used()
    connection.note_sent(Sent(is_pending=False, acknowledged_bytes=taken), now_s=25)
    assert connection.is_idle(BOUNDS, now_s=40) is is_idle


def test_a_client_that_takes_nothing_is_stalled_though_its_request_is_in_flight() -> None:
    connection = used(ended=0)
    connection.note_sent(Sent(is_pending=True, acknowledged_bytes=100), now_s=1)
    connection.note_sent(Sent(is_pending=True, acknowledged_bytes=100), now_s=21)
    assert not connection.is_stalled(BOUNDS, now_s=21)
    assert connection.is_stalled(BOUNDS, now_s=21.1)


def test_a_client_that_takes_all_between_two_looks_is_not_stalled() -> None:
    connection = used(ended=0)
    connection.note_sent(Sent(is_pending=True, acknowledged_bytes=100), now_s=1)
    connection.note_sent(Sent(is_pending=False, acknowledged_bytes=200), now_s=15)
    connection.note_sent(Sent(is_pending=True, acknowledged_bytes=200), now_s=20)
    assert not connection.is_stalled(BOUNDS, now_s=39)


# --- shares ---------------------------------------------------------------------------------------


def test_the_silent_go_first_then_the_idle_then_the_newest_request() -> None:
    silents = [silent(9), silent(8)]
    idle = [used(2), used(1)]
    busy = [used(3, ended=0), used(4, ended=0)]
    order = [silents[1], silents[0], idle[1], idle[0], busy[1], busy[0]]
    for count in (4, 5, 6):
        held = [*busy, *idle, *silents][:count]
        expected = [each for each in order if each in held][: count - 3]
        assert Shares(BOUNDS).excess(held, now_s=10) == expected


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=40))
def test_nobody_loses_what_is_within_a_share(holders: list[str | None]) -> None:
    held = [silent(number, holder=holder) for number, holder in enumerate(holders)]
    closed = Shares(BOUNDS).excess(held, now_s=100)
    for holder in ("a", "b", "c"):
        mine = [each for each in held if each.holder == holder]
        assert len([each for each in closed if each.holder == holder]) == max(0, len(mine) - 3)
    assert not [each for each in closed if each.holder is None]


def test_an_address_is_shut_out_while_it_floods_a_server_that_fills_up() -> None:
    shares = Shares(BOUNDS)
    assert shares.excess([silent(holder="b") for _ in range(5)], now_s=0)
    assert shares.blocked(now_s=0) == []
    shares.excess([silent(holder="b") for _ in range(6)], now_s=1)
    shares.excess([silent(holder="c") for _ in range(6)], now_s=2)
    assert shares.blocked(now_s=2) == ["b", "c"]
    assert shares.is_contended
    assert shares.blocked(now_s=1.1 + BLOCK_S) == ["c"]
    assert shares.blocked(now_s=2.1 + BLOCK_S) == []
    assert not shares.is_contended


@pytest.mark.parametrize(
    ("address", "holder"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("10.0.0.9", None),
        ("::ffff:10.0.0.9", None),
    ],
)
def test_a_share_belongs_to_what_one_customer_has(address: str, holder: str | None) -> None:
    trusted = (ip_network("10.0.0.0/8"),)
    expected = None if holder is None else ip_network(holder)
    assert client_network(Peer(ip_address(address), 1), trusted) == expected


# --- Requests in flight are counted for each connection, and forgotten with it -----------------


CLIENT = ("192.0.2.1", "50000")
SCOPE: Scope = {"type": "http", "client": CLIENT}


async def receive() -> dict[str, object]:
    return {}


async def send(_message: object) -> None: ...


async def test_a_request_is_in_flight_until_it_is_answered() -> None:
    requests, answered = Requests(), asyncio.Event()

    async def application(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await answered.wait()

    both = [
        asyncio.create_task(requests.track(application, SCOPE, receive, send)) for _ in range(2)
    ]
    await asyncio.sleep(0)
    assert requests.of(CLIENT) == (2, 0)
    requests.forget_all_but(set())
    assert requests.of(CLIENT) == (2, 0)
    answered.set()
    await asyncio.gather(*both)
    assert requests.of(CLIENT) == (2, 2)
    requests.forget_all_but({CLIENT})
    assert requests.of(CLIENT) == (2, 2)
    requests.forget_all_but(set())
    assert requests.of(CLIENT) == (0, 0)


async def test_a_request_that_fails_has_ended() -> None:
    async def application(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError

    requests = Requests()
    with pytest.raises(RuntimeError):
        await requests.track(application, SCOPE, receive, send)
    assert requests.of(CLIENT) == (1, 1)


# --- sockets -----------------------------------------------------------------------------------
#
# What the system does for us: finding connections, ending them, and dropping what comes.


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="for Linux")

DROPPED_S = 0.3
"""How long a connection is tried that is dropped without a word."""


@pytest.fixture(params=[socket.AF_INET, socket.AF_INET6], ids=["ipv4", "both"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family: socket.AddressFamily = request.param
    with socket.socket(family) as listener:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("127.0.0.1" if family == socket.AF_INET else "::", 0))
        listener.listen()
        yield listener


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def is_taken(listener: socket.socket, source: str) -> bool:
    """Whether a connection from there comes to be, however long it takes."""
    return connects(listener, source, within_s=DEADLINE_S)


def is_dropped(listener: socket.socket, source: str) -> bool:
    return not connects(listener, source, within_s=DROPPED_S)


def connects(listener: socket.socket, source: str, *, within_s: float) -> bool:
    host = "::1" if ":" in source else "127.0.0.1"
    with socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET) as client:
        client.settimeout(within_s)
        client.bind((source, 0))
        try:
            client.connect((host, port_of(listener)))
        except TimeoutError:
            return False
        return True


@contextlib.contextmanager
def connected(listener: socket.socket) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection; the client's first."""
    with socket.create_connection(("127.0.0.1", port_of(listener))) as client:
        accepted, _ = listener.accept()
        with accepted:
            yield client, accepted


def name_of(descriptor: int) -> bytes:
    return dict(Descriptors().connected())[descriptor]


@on_linux
def test_who_is_shut_out_is_dropped_and_nobody_else(listener: socket.socket) -> None:
    packet_filter = PacketFilter(listener.fileno())
    packet_filter.block([ip_network("127.0.0.2/32"), ip_network("2001:db8::/64")])
    assert is_dropped(listener, "127.0.0.2")
    assert is_taken(listener, "127.0.0.1")
    packet_filter.block([ip_network("127.0.0.3/32")])
    assert is_taken(listener, "127.0.0.2")
    assert is_dropped(listener, "127.0.0.3")
    packet_filter.block([])
    assert is_taken(listener, "127.0.0.3")


@on_linux
def test_a_network_of_ipv6_is_shut_out_as_a_whole() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        packet_filter = PacketFilter(listener.fileno())
        packet_filter.block([ip_network("::/64")])
        assert is_dropped(listener, "::1")
        packet_filter.block([ip_network("0:0:0:1::/64")])
        assert is_taken(listener, "::1")


@on_linux
def test_the_last_of_too_many_are_shut_out(listener: socket.socket) -> None:
    many = [ip_network((0x0A000000 + number, 32)) for number in range(2 * MAX_BLOCKED)]
    wide = [ip_network((number << 64, 64)) for number in range(0x20010DB8, 0x20010DB8 + 300)]
    packet_filter = PacketFilter(listener.fileno())
    packet_filter.block([*wide, *many, ip_network("127.0.0.2/32")])
    assert is_dropped(listener, "127.0.0.2")
    packet_filter.block([ip_network("127.0.0.2/32"), *wide])
    assert is_taken(listener, "127.0.0.2")
    packet_filter.block([*many, *wide[: MAX_BLOCKED - 1], ip_network("127.0.0.2/32")])
    assert is_dropped(listener, "127.0.0.2")


@on_linux
def test_a_door_left_alone_stays_open(listener: socket.socket) -> None:
    packet_filter = PacketFilter(listener.fileno())
    packet_filter.block([ip_network("127.0.0.2/32")])
    packet_filter.detach()
    assert is_taken(listener, "127.0.0.2")
    packet_filter.block([ip_network("127.0.0.2/32")])
    assert is_taken(listener, "127.0.0.2")


@on_linux
def test_a_filter_that_another_worker_left_is_removed(listener: socket.socket) -> None:
    PacketFilter(listener.fileno()).block([ip_network("127.0.0.2/32")])
    PacketFilter(listener.fileno()).block([])
    assert is_taken(listener, "127.0.0.2")


@on_linux
def test_connections_are_found_and_ended(listener: socket.socket) -> None:
    with connected(listener) as (client, accepted):
        name = name_of(accepted.fileno())
        peer = read_name(name)
        assert peer is not None
        assert peer.port == client.getsockname()[1]
        descriptors = Descriptors()
        assert descriptors.local_port(accepted.fileno()) == port_of(listener)
        port = port_of(listener)
        assert descriptors.end(accepted.fileno(), name, port=port, abort=False)
        assert client.recv(1) == b""
        assert accepted.recv(1) == b"", "its owner sees the end, too"


@on_linux
def test_connections_are_ended_when_no_descriptor_is_left(listener: socket.socket) -> None:
    descriptors, port = Descriptors(), port_of(listener)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with connected(listener) as (client, accepted), contextlib.ExitStack() as held:
        name = name_of(accepted.fileno())
        highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        with contextlib.suppress(OSError):
            while True:
                held.callback(os.close, os.dup(accepted.fileno()))
        assert descriptors.end(accepted.fileno(), name, port=port, abort=False)
        assert client.recv(1) == b""


@on_linux
def test_a_reused_descriptor_is_left_alone(
    listener: socket.socket,
) -> None:
    descriptors, port = Descriptors(), port_of(listener)
    with connected(listener) as (_, first), connected(listener) as (client, second):
        name = name_of(first.fileno())
        os.dup2(second.fileno(), first.fileno())
        assert not descriptors.end(first.fileno(), name, port=port, abort=True)
        assert not descriptors.end(listener.fileno(), name, port=port, abort=True)
        assert not descriptors.end(client.fileno(), name_of(client.fileno()), port=port, abort=True)
        second.sendall(b"x")
        assert client.recv(1) == b"x"


@on_linux
def test_what_a_client_takes_is_seen(listener: socket.socket) -> None:
    descriptors = Descriptors()
    with connected(listener) as (client, accepted):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        accepted.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                accepted.send(bytes(65_536))
        stalled = descriptors.sent(accepted.fileno())
        assert stalled is not None
        assert stalled.is_pending
        before = stalled.acknowledged_bytes

        def is_taking() -> bool:
            client.recv(65_536)
            moved = descriptors.sent(accepted.fileno())
            return moved is not None and moved.acknowledged_bytes > before

        wait_until(is_taking, "what the client takes is acknowledged")
        assert descriptors.sent(0) is None


@on_linux
@pytest.mark.parametrize("name", [b"", b"\1\0/tmp/x", bytes(110)])
def test_sockets_that_are_not_of_the_internet_have_no_peer(name: bytes) -> None:
    assert read_name(name) is None


@on_linux
def test_a_peer_is_written_as_the_http_server_writes_it() -> None:
    family = socket.AF_INET6.to_bytes(2, sys.byteorder)
    mapped = bytes(10) + b"\xff\xff" + bytes((192, 0, 2, 7))
    peer = read_name(family + (80).to_bytes(2, "big") + bytes(4) + mapped + bytes(4))
    assert isinstance(peer, Peer)
    assert peer.client == ("::ffff:192.0.2.7", "80")
