"""Many fetches at once, failures in a row and peers that never end (A-111, A-191)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from podstead.outbound.errors import (
    BadStatus,
    CircuitOpen,
    Congested,
    FetchFailed,
    Refusal,
    Refused,
    ServerFailed,
    TooLarge,
    TooSlow,
    Unreachable,
    WrongType,
)
from podstead.outbound.fetch import Outcomes
from podstead.outbound.foreign_documents import FetchedDocument, OutboundLimits, Purpose
from tests.support.peer import (
    HASTY,
    PATIENT,
    Deployment,
    Gate,
    Peer,
    Reply,
    answer,
    raw,
    redirect,
    stalled,
)

pytestmark = pytest.mark.anyio


async def test_equal_fetches_at_the_same_time_are_one(deployment: Deployment, peer: Peer) -> None:
    """A-111, single-flight per URL; fragments do not tell documents apart."""
    gate = Gate()
    peer.replies["/"] = gate.reply
    fetcher = deployment.fetcher()
    fetches = [
        asyncio.create_task(fetcher.fetch(peer.url(f"/#{index}"), PATIENT)) for index in range(20)
    ]
    await gate.arrivals(1)
    gate.opened.set()
    documents = await asyncio.gather(*fetches)
    assert len(peer.requests) == 1
    assert len(set(documents)) == 1


async def test_fetches_under_different_policies_are_not_shared(
    deployment: Deployment, peer: Peer
) -> None:
    """A document accepted under one set of rules says nothing under another."""
    gate = Gate()
    peer.replies["/"] = gate.reply
    fetcher = deployment.fetcher()
    strict = asyncio.create_task(
        fetcher.fetch(peer.url(), replace(PATIENT, content_types=frozenset({"text/html"})))
    )
    fitting = asyncio.create_task(fetcher.fetch(peer.url(), PATIENT))
    await gate.arrivals(2)
    gate.opened.set()
    with pytest.raises(WrongType):
        await strict
    assert (await fitting).media_type == "text/turtle"


async def test_a_cancelled_caller_does_not_end_the_fetch_for_the_others(
    deployment: Deployment, peer: Peer
) -> None:
    """A cancelled request must not fail its neighbours."""
    gate = Gate()
    peer.replies["/"] = gate.reply
    fetcher = deployment.fetcher()
    leaving = asyncio.create_task(fetcher.fetch(peer.url(), PATIENT))
    staying = asyncio.create_task(fetcher.fetch(peer.url(), PATIENT))
    await gate.arrivals(1)
    leaving.cancel()
    gate.opened.set()
    left, stayed = await asyncio.gather(leaving, staying, return_exceptions=True)
    assert isinstance(left, asyncio.CancelledError)
    assert isinstance(stayed, FetchedDocument)
    assert len(peer.requests) == 1


async def test_one_failure_reaches_every_caller(deployment: Deployment, peer: Peer) -> None:
    """A-111: a shared fetch fails for all."""
    peer.replies["/"] = answer("500 Oh")
    fetcher = deployment.fetcher()
    failures = await asyncio.gather(
        *(fetcher.fetch(peer.url(), PATIENT) for _ in range(5)), return_exceptions=True
    )
    assert [type(failure) for failure in failures] == [ServerFailed] * 5
    assert len(peer.requests) == 1


async def test_a_host_gets_four_connections_at_once(deployment: Deployment, peer: Peer) -> None:
    """A-111, 4 per host; another host is served meanwhile, so the rest did wait."""
    gate = Gate()
    for index in range(9):
        peer.replies[f"/{index}"] = gate.reply
    peer.replies["/other"] = answer()
    fetcher = deployment.fetcher()
    fetches = [
        asyncio.create_task(fetcher.fetch(peer.url(f"/{index}"), PATIENT)) for index in range(9)
    ]
    await gate.arrivals(4)
    await fetcher.fetch(peer.url("/other", host="other.localhost"), PATIENT)
    assert peer.connections == 5
    gate.opened.set()
    await asyncio.gather(*fetches)
    assert gate.peak == 4
    assert peer.connections == 10


async def test_the_number_of_fetches_under_way_is_limited_over_all_hosts(
    deployment: Deployment, peer: Peer
) -> None:
    """A-191, 64 concurrent outgoing fetches."""
    gate = Gate()
    peer.replies["/"] = gate.reply
    fetcher = deployment.fetcher()
    fetches = [
        asyncio.create_task(fetcher.fetch(peer.url(host=f"h{index}.localhost"), PATIENT))
        for index in range(70)
    ]
    await gate.arrivals(64)
    gate.opened.set()
    await asyncio.gather(*fetches)
    assert gate.peak == 64
    assert peer.connections == 70


async def test_a_fetch_that_gets_no_slot_in_time_does_not_blame_the_host(
    deployment: Deployment, peer: Peer
) -> None:
    """A-191: our own queue is not the peer's slowness, nor remembered as its failure."""
    gate = Gate()
    peer.replies["/held"] = gate.reply
    peer.replies["/wanted"] = stalled()
    fetcher = deployment.fetcher(
        limits=OutboundLimits(max_concurrent=1, circuit_failures=1, failure_memory_s=60)
    )
    held = asyncio.create_task(fetcher.fetch(peer.url("/held"), PATIENT))
    await gate.arrivals(1)
    for host in ("localhost", "other.localhost"):
        with pytest.raises(Congested):
            await fetcher.fetch(peer.url("/wanted", host=host), HASTY)
    gate.opened.set()
    await held
    assert peer.connections == 1
    with pytest.raises(TooSlow):
        await fetcher.fetch(peer.url("/wanted"), HASTY)


# Failures remembered


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (answer("404 Not Found"), BadStatus),
        (answer(content_type="text/html"), WrongType),
        (answer(body=b"x" * 5000), TooLarge),
        (raw(b""), Unreachable),
        (redirect("http://10.0.0.1/"), Refused),
    ],
)
async def test_a_failed_fetch_is_answered_from_memory_for_a_while(
    deployment: Deployment, peer: Peer, reply: Reply, failure: type[FetchFailed]
) -> None:
    """A-191, negative caching: exactly as long as configured, then asked again."""
    peer.replies["/"] = reply
    fetcher = deployment.fetcher(limits=OutboundLimits(failure_memory_s=30))
    with pytest.raises(failure):
        await fetcher.fetch(peer.url(), PATIENT)
    peer.replies["/"] = answer()
    asked = len(peer.requests)
    deployment.clock.advance(seconds=29.999)
    with pytest.raises(failure):
        await fetcher.fetch(peer.url(), PATIENT)
    assert len(peer.requests) == asked
    deployment.clock.advance(seconds=0.001)
    assert (await fetcher.fetch(peer.url(), PATIENT)).media_type == "text/turtle"


async def test_a_cached_failure_has_the_message_of_the_first_one(
    deployment: Deployment, peer: Peer
) -> None:
    """A-191: status and sentence come back with it."""
    peer.replies["/"] = answer("410 Gone")
    fetcher = deployment.fetcher()
    told = []
    for _ in range(2):
        with pytest.raises(BadStatus) as caught:
            await fetcher.fetch(peer.url(), PATIENT)
        told.append((caught.value.status, str(caught.value)))
    assert told == [(410, "The remote server did not return the document")] * 2


async def test_a_failure_is_remembered_for_its_own_document_and_policy_only(
    deployment: Deployment, peer: Peer
) -> None:
    """A-191."""
    peer.replies["/broken"] = answer(content_type="text/html")
    peer.replies["/sound"] = answer()
    fetcher = deployment.fetcher()
    with pytest.raises(WrongType):
        await fetcher.fetch(peer.url("/broken"), PATIENT)
    await fetcher.fetch(peer.url("/sound"), PATIENT)
    lenient = replace(PATIENT, content_types=frozenset({"text/html"}))
    await fetcher.fetch(peer.url("/broken"), lenient)


# Hosts that keep failing


@pytest.mark.parametrize("reply", [answer("500 Oh"), answer("503 No"), raw(b"")])
async def test_a_host_that_failed_five_times_is_left_alone_for_a_minute(
    deployment: Deployment, peer: Peer, reply: Reply
) -> None:
    """A-191, circuit breaker: 5 failures -> 60 s; then one fetch tries, and success closes it."""
    for index in range(5):
        peer.replies[f"/{index}"] = reply
    peer.replies["/sound"] = answer()
    fetcher = deployment.fetcher()
    for index in range(5):
        with pytest.raises((BadStatus, Unreachable)):
            await fetcher.fetch(peer.url(f"/{index}"), PATIENT)
    with pytest.raises(CircuitOpen):
        await fetcher.fetch(peer.url("/sound"), PATIENT)
    assert "/sound" not in [request.path for request in peer.requests]
    await fetcher.fetch(peer.url("/sound", host="other.localhost"), PATIENT)
    deployment.clock.advance(seconds=59.999)
    with pytest.raises(CircuitOpen):
        await fetcher.fetch(peer.url("/sound"), PATIENT)
    deployment.clock.advance(seconds=0.001)
    for _ in range(2):
        await fetcher.fetch(peer.url("/sound"), PATIENT)


async def test_a_slow_host_opens_its_circuit(deployment: Deployment, peer: Peer) -> None:
    """A-191."""
    peer.replies["/"] = stalled()
    fetcher = deployment.fetcher(limits=OutboundLimits(circuit_failures=1))
    with pytest.raises(TooSlow):
        await fetcher.fetch(peer.url(), HASTY)
    with pytest.raises(CircuitOpen):
        await fetcher.fetch(peer.url("/x"), PATIENT)


@pytest.mark.parametrize(
    "reply",
    [
        answer("404 Not Found"),
        answer("499 The Last That Blames the Client"),
        answer(content_type="text/html"),
        answer(body=b"x" * 5000),
        redirect("http://10.0.0.1/"),
    ],
)
async def test_a_host_that_answers_is_not_blamed_for_what_we_refuse(
    deployment: Deployment, peer: Peer, reply: Reply
) -> None:
    """A-191: whoever names bad documents of a host cannot cut it off for everybody."""
    for index in range(6):
        peer.replies[f"/{index}"] = reply
    peer.replies["/sound"] = answer()
    fetcher = deployment.fetcher()
    for index in range(6):
        with pytest.raises(FetchFailed):
            await fetcher.fetch(peer.url(f"/{index}"), PATIENT)
    await fetcher.fetch(peer.url("/sound"), PATIENT)


@pytest.mark.parametrize(
    "good_sign", [answer(), answer("404 Not Found"), answer(content_type="text/html")]
)
async def test_any_response_of_a_host_resets_its_failures(
    deployment: Deployment, peer: Peer, good_sign: Reply
) -> None:
    """A-191: failures in a row."""
    fetcher = deployment.fetcher()
    for index in range(9):
        peer.replies[f"/{index}"] = good_sign if index == 4 else answer("500 Oh")
        with suppress(BadStatus, WrongType):
            await fetcher.fetch(peer.url(f"/{index}"), PATIENT)
    assert [request.path for request in peer.requests] == [f"/{index}" for index in range(9)]


# What is counted


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (None, "succeeded"),
        (Refused(Refusal.OWN_ORIGIN), "refused"),
        (CircuitOpen(1), "not sent"),
        (Congested(), "not sent"),
        (TooSlow(), "failed"),
        (asyncio.CancelledError(), "failed"),
    ],
    ids=repr,
)
def test_requests_are_counted_by_what_became_of_them(
    failure: BaseException | None, outcome: str
) -> None:
    outcomes = Outcomes()
    outcomes.note(Purpose.WEB_ID, failure)
    assert outcomes.counts() == {(Purpose.WEB_ID, outcome): 1}
