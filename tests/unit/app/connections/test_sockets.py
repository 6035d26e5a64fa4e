"""What the system does for us: finding connections, ending them, and dropping what comes."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import sys
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from podstead.app.process.connections.kernel import (
    MAX_BLOCKED,
    Descriptors,
    PacketFilter,
    Peer,
    read_name,
)
from tests.support.server import DEADLINE_S
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="for Linux")

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


def test_a_network_of_ipv6_is_shut_out_as_a_whole() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        packet_filter = PacketFilter(listener.fileno())
        packet_filter.block([ip_network("::/64")])
        assert is_dropped(listener, "::1")
        packet_filter.block([ip_network("0:0:0:1::/64")])
        assert is_taken(listener, "::1")


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


def test_a_door_left_alone_stays_open(listener: socket.socket) -> None:
    packet_filter = PacketFilter(listener.fileno())
    packet_filter.block([ip_network("127.0.0.2/32")])
    packet_filter.detach()
    assert is_taken(listener, "127.0.0.2")
    packet_filter.block([ip_network("127.0.0.2/32")])
    assert is_taken(listener, "127.0.0.2")


def test_a_filter_that_another_worker_left_is_removed(listener: socket.socket) -> None:
    PacketFilter(listener.fileno()).block([ip_network("127.0.0.2/32")])
    PacketFilter(listener.fileno()).block([])
    assert is_taken(listener, "127.0.0.2")


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


@pytest.mark.parametrize("name", [b"", b"\1\0/tmp/x", bytes(110)])
def test_sockets_that_are_not_of_the_internet_have_no_peer(name: bytes) -> None:
    assert read_name(name) is None


def test_a_peer_is_written_as_the_http_server_writes_it() -> None:
    family = socket.AF_INET6.to_bytes(2, sys.byteorder)
    mapped = bytes(10) + b"\xff\xff" + bytes((192, 0, 2, 7))
    peer = read_name(family + (80).to_bytes(2, "big") + bytes(4) + mapped + bytes(4))
    assert isinstance(peer, Peer)
    assert peer.client == ("::ffff:192.0.2.7", "80")
