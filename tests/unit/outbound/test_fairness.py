"""What one stranger has fetched leaves room for others: shares by purpose, origin, requester."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from podstead.core.errors import RemoteUnavailable
from podstead.core.request_context import set_requester
from podstead.outbound.errors import CircuitOpen, Congested, ServerFailed, Unreachable
from podstead.outbound.fetch import (
    ConcurrencyLimit,
    ConcurrencyLimiter,
    Fetcher,
    trusted_certificates,
)
from podstead.outbound.foreign_documents import FetchPolicy, OutboundLimits, Purpose
from podstead.outbound.guard import MAX_LOOKUPS_PER_REQUESTER, Guard, SystemResolver
from podstead.outbound.requests import Poster, PostLimits
from podstead.outbound.urls import UrlRules
from tests.support.peer import (
    HASTY,
    PATIENT,
    Deployment,
    Gate,
    Peer,
    ScriptedResolver,
    answer,
)

DEAD = "http://localhost:1"
STRANGER, OTHER = "192.0.2.1", "192.0.2.2"
CLIENTS = replace(PATIENT, purpose=Purpose.CLIENT)


async def fetched_by(
    requester: str, fetcher: Fetcher, url: str, policy: FetchPolicy = PATIENT
) -> Any:  # noqa: ANN401
    """Fetch in a task, as requests do."""

    async def fetch() -> Any:  # noqa: ANN401
        set_requester(requester)
        return await fetcher.fetch(url, policy)

    return await asyncio.create_task(fetch())


async def test_a_dead_port_stops_no_other_port_of_its_host(
    deployment: Deployment, peer: Peer
) -> None:
    peer.replies["/"] = answer()
    fetcher = deployment.fetcher(limits=OutboundLimits(circuit_failures=1))
    with pytest.raises(Unreachable):
        await fetcher.fetch(f"{DEAD}/a", PATIENT)
    with pytest.raises(CircuitOpen):
        await fetcher.fetch(f"{DEAD}/b", PATIENT)
    await fetcher.fetch(peer.url("/"), PATIENT)


async def test_what_fails_for_one_purpose_is_fetched_for_another(
    deployment: Deployment, peer: Peer
) -> None:
    peer.replies["/broken"] = answer("500 Oh")
    peer.replies["/"] = answer()
    fetcher = deployment.fetcher(limits=OutboundLimits(circuit_failures=1))
    with pytest.raises(ServerFailed):
        await fetcher.fetch(peer.url("/broken"), PATIENT)
    with pytest.raises(CircuitOpen):
        await fetcher.fetch(peer.url("/"), PATIENT)
    for purpose in Purpose:
        if purpose is not PATIENT.purpose:
            await fetcher.fetch(peer.url("/"), replace(PATIENT, purpose=purpose))


async def test_a_cached_failure_says_when_to_try_again(deployment: Deployment, peer: Peer) -> None:
    peer.replies["/"] = answer("503 No")
    fetcher = deployment.fetcher(limits=OutboundLimits(failure_memory_s=30))
    told = []
    for seconds in (0, 10, 19.5):
        deployment.clock.advance(seconds=seconds)
        with pytest.raises(RemoteUnavailable) as caught:
            await fetcher.fetch(peer.url(), PATIENT)
        told.append(caught.value.retry_after_s)
    assert told == [30, 20, 1]


async def test_a_stranger_leaves_slots_of_an_origin_to_others(
    deployment: Deployment, peer: Peer
) -> None:
    gate = Gate()
    for index in range(4):
        peer.replies[f"/{index}"] = gate.reply
    peer.replies["/wanted"] = answer()
    fetcher = deployment.fetcher()
    held = [
        asyncio.create_task(fetched_by(STRANGER, fetcher, peer.url(f"/{index}")))
        for index in range(4)
    ]
    await gate.arrivals(2)
    await fetched_by(OTHER, fetcher, peer.url("/wanted"))
    with pytest.raises(Congested):
        await fetched_by(STRANGER, fetcher, peer.url("/wanted"), HASTY)
    assert gate.peak == 2
    gate.opened.set()
    await asyncio.gather(*held)


async def test_a_stranger_leaves_slots_of_a_purpose_to_others(
    deployment: Deployment, peer: Peer
) -> None:
    gate = Gate()
    for index in range(8):
        peer.replies[f"/{index}"] = gate.reply
    peer.replies["/wanted"] = answer()
    limits = OutboundLimits(max_concurrent=4, max_concurrent_per_requester=3)
    fetcher = deployment.fetcher(limits=limits)
    held = [
        asyncio.create_task(
            fetched_by(STRANGER, fetcher, peer.url(f"/{index}", host=f"h{index}.localhost"))
        )
        for index in range(8)
    ]
    await gate.arrivals(3)
    await fetched_by(OTHER, fetcher, peer.url("/wanted"))
    await fetched_by(STRANGER, fetcher, peer.url("/wanted"), CLIENTS)
    gate.opened.set()
    await asyncio.gather(*held)
    assert gate.peak == 3


async def test_shares_that_nobody_uses_are_forgotten() -> None:
    slots = ConcurrencyLimiter()
    deadline_s = asyncio.get_running_loop().time() + 60
    shares = [ConcurrencyLimit("narrow", 1), ConcurrencyLimit("wide", 2)]
    async with slots.acquire(shares, deadline_s):
        async with slots.acquire([ConcurrencyLimit("wide", 2)], deadline_s):
            with pytest.raises(Congested):
                async with slots.acquire(shares, 0):
                    pass
        assert set(slots._slots) == {"narrow", "wide"}
    assert not slots._slots


async def test_messages_for_one_subscriber_leave_slots_to_others(peer: Peer) -> None:
    gate = Gate()
    guard = Guard(UrlRules(loopback_allowed=True), ScriptedResolver({}))
    limits = PostLimits(
        max_concurrent=2, max_concurrent_per_requester=1, total_timeout_s=600, connect_timeout_s=600
    )
    poster = Poster(guard, tls=trusted_certificates(), limits=limits)
    peer.replies["/slow"] = gate.reply
    peer.replies["/wanted"] = answer()

    async def post(requester: str, url: str) -> int:
        set_requester(requester)
        return await poster.post(url, b"", {})

    slow = [
        asyncio.create_task(post(STRANGER, peer.url("/slow", host=f"h{index}.localhost")))
        for index in range(3)
    ]
    await gate.arrivals(1)
    assert await asyncio.create_task(post(OTHER, peer.url("/wanted"))) == 200
    gate.opened.set()
    assert await asyncio.gather(*slow) == [200] * 3
    assert gate.peak == 1


async def test_a_slow_receiver_leaves_slots_to_other_ports_of_its_host(
    peer: Peer, other_peer: Peer
) -> None:
    gate = Gate()
    guard = Guard(UrlRules(loopback_allowed=True), ScriptedResolver({}))
    limits = PostLimits(max_concurrent_per_origin=1, total_timeout_s=600, connect_timeout_s=600)
    poster = Poster(guard, tls=trusted_certificates(), limits=limits)
    peer.replies["/slow"] = gate.reply
    other_peer.replies["/wanted"] = answer()
    slow = [asyncio.create_task(poster.post(peer.url("/slow"), b"", {})) for _ in range(2)]
    await gate.arrivals(1)
    assert await poster.post(other_peer.url("/wanted"), b"", {}) == 200
    gate.opened.set()
    assert await asyncio.gather(*slow) == [200] * 2
    assert gate.peak == 1


@pytest.fixture
async def stalled_names(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SystemResolver]:
    """A resolver whose look-ups of all names but ``localhost`` end with the test."""
    ended = threading.Event()
    real = socket.getaddrinfo

    def look_up(host: str, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        if host != "localhost":
            ended.wait()
        return real("localhost", *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    resolver = SystemResolver()
    yield resolver
    ended.set()
    resolver.close()


async def test_names_of_slow_name_servers_leave_look_ups_to_others(
    stalled_names: SystemResolver,
) -> None:
    set_requester(STRANGER)
    slow = [
        asyncio.create_task(stalled_names.resolve(f"h{number}.example"))
        for number in range(MAX_LOOKUPS_PER_REQUESTER)
    ]
    await asyncio.sleep(0)
    with pytest.raises(Congested):
        await stalled_names.resolve("one-more.example")
    slow[0].cancel()  # its thread goes on
    await asyncio.sleep(0)
    with pytest.raises(Congested):
        await stalled_names.resolve("one-more.example")
    set_requester(OTHER)
    assert await stalled_names.resolve("localhost")
    for each in slow:
        each.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
