"""Open sockets are limited, and are closed when the server stops (N-31)."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from podstead.core.errors import RateLimited
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.notifications.deliveries import EndReason
from podstead.web.websocket import OpenSockets

ALICE = Identity("https://alice.example/#me", AuthenticationMethod.DPOP)


def sockets(per_address: int = 0, per_agent: int = 0) -> OpenSockets:
    return OpenSockets(per_address=per_address, per_agent=per_agent, queue_capacity=5)


def test_an_address_has_its_places_back_when_listeners_leave() -> None:
    opened = sockets(per_address=2)
    for _ in range(3):
        with opened.admit("192.0.2.1", None), opened.admit("192.0.2.1", None):
            with pytest.raises(RateLimited), opened.admit("192.0.2.1", None):
                pass
            with opened.admit("192.0.2.2", None):
                pass


def test_addresses_of_one_customer_count_as_one() -> None:
    """A-181: an IPv6 customer has a /64."""
    opened = sockets(per_address=1)
    with opened.admit("2001:db8::1", None):
        with pytest.raises(RateLimited), opened.admit("2001:db8::2", None):
            pass
        with opened.admit("2001:db8:0:1::1", None):
            pass


def test_an_agent_is_counted_wherever_it_comes_from() -> None:
    opened = sockets(per_agent=1)
    with opened.admit("192.0.2.1", ALICE):
        with pytest.raises(RateLimited), opened.admit("192.0.2.2", ALICE):
            pass
        with opened.admit("192.0.2.1", None), opened.admit("192.0.2.1", None):
            pass


async def test_stopping_waits_until_every_listener_has_gone() -> None:
    """Also after a time at which there was none."""
    opened = sockets()
    with opened.admit("192.0.2.1", None):
        pass
    with ExitStack() as first, ExitStack() as second:
        boxes = [stack.enter_context(opened.admit("192.0.2.1", None)) for stack in (first, second)]
        draining = asyncio.create_task(opened.drain())
        await asyncio.sleep(0)
        assert [queue.ending for queue in boxes] == [EndReason.STOPPING] * 2
        first.close()
        await asyncio.sleep(0)
        assert not draining.done()
        second.close()
        await draining


async def test_a_client_that_connects_while_the_server_stops_is_closed_at_once() -> None:
    opened = sockets()
    await opened.drain()
    with opened.admit("192.0.2.1", None) as queue:
        assert queue.ending is EndReason.STOPPING
