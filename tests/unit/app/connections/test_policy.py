"""Which connections are closed, and which addresses shut out, without a clock or a socket."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.app.process.connections.kernel import Peer
from podstead.app.process.connections.policy import (
    BLOCK_S,
    SIGNIFICANT_BYTES,
    Bounds,
    Connection,
    Sent,
    Shares,
)
from podstead.app.process.connections.supervisor import client_network

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
