"""How processes are run and ended, with programs that misbehave in the place of git."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

import pytest
from granian import _futures

from podstead.app.adapters.fair_semaphore import FairSemaphore
from podstead.app.adapters.own_resources import AccountProfiles
from podstead.core.errors import BodyTooLarge, Conflict, Overloaded
from podstead.core.operation import InMemoryBody
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.service import ResourceService

# --- Requests of the server itself: what becomes of them before they reach a resource ----------


BASE = "https://pods.example"


class Resources(ResourceService):
    """Notes what is asked."""

    def __init__(self) -> None:
        self.asked: list[ResourceRequest] = []

    async def handle(self, exchange: ResourceRequest) -> Outcome:
        self.asked.append(exchange)
        return Outcome(Result.CHANGED)


@pytest.mark.parametrize(
    "web_id",
    [
        "https://elsewhere.example/alice/#me",
        "https://pods.example.org/alice/#me",
        "https://pods.example:8443/alice/#me",
        "http://pods.example/alice/#me",
        "https://pods.example#me",
        "https://pods.example/%zz/#me",
        "https://pods.example/\ud800/#me",
        "",
    ],
)
async def test_a_profile_that_is_not_here_cannot_be_changed(web_id: str) -> None:
    resources = Resources()
    profiles = AccountProfiles(base_url=BASE, resources=resources)
    for change in (profiles.add_name, profiles.remove_name):
        with pytest.raises(Conflict):
            await change(web_id, "did:nostr:x")
    assert resources.asked == []


async def test_a_profile_is_changed_as_its_owner_would() -> None:
    resources = Resources()
    web_id = f"{BASE}/alice/#me"
    await AccountProfiles(base_url=BASE, resources=resources).add_name(web_id, "did:nostr:x")
    [exchange] = resources.asked
    assert exchange.agent is not None
    assert (exchange.agent.iri, exchange.agent.aliases) == (web_id, frozenset())
    assert (exchange.operation.method, exchange.operation.target) == ("PATCH", "/alice/")


@pytest.mark.parametrize("content", [b"", b"content"])
async def test_a_given_body_is_one_like_any_other(content: bytes) -> None:
    body = InMemoryBody(content)
    assert (body.announced, body.size_bytes) == (bool(content), len(content))
    assert await body.read(limit_bytes=7) == content
    assert b"".join([piece async for piece in body.chunks(limit_bytes=7)]) == content


async def test_a_given_body_minds_the_limit() -> None:
    body = InMemoryBody(b"content")
    with pytest.raises(BodyTooLarge):
        await body.read(limit_bytes=6)
    with pytest.raises(BodyTooLarge):
        _ = [piece async for piece in body.chunks(limit_bytes=6)]


# --- Who has to wait for a slot, and who does not although others are slow ---------------------


AT_ONCE_S = 0.001


@pytest.mark.parametrize(("most", "of_one"), [(1, 1), (2, 1), (3, 2), (8, 4)])
async def test_nobody_has_more_than_half(most: int, of_one: int) -> None:
    slots = FairSemaphore(most, wait_s=AT_ONCE_S, refusal="Too many")
    for _ in range(of_one):
        await slots.acquire("slow")
    with pytest.raises(Overloaded):
        await slots.acquire("slow")
    for _ in range(most - of_one):
        await slots.acquire("other")
    with pytest.raises(Overloaded):
        await slots.acquire("third")


async def test_a_waiting_requester_gets_a_returned_slot() -> None:
    slots = FairSemaphore(2, wait_s=1000, refusal="Too many")
    await slots.acquire("a")
    waiting = asyncio.create_task(slots.acquire("a"))
    await slots.acquire("b")
    assert not waiting.done()
    slots.release("a")
    await waiting
    slots.release("a")
    slots.release("b")
    await slots.acquire("c")


async def test_cancelled_waiters_leave_nothing_behind() -> None:
    """Whether it is refused or cancelled, for a slot of its own share or of all."""
    slots = FairSemaphore(2, wait_s=1000, refusal="Too many")
    await slots.acquire("a")
    await slots.acquire("b")
    for requester in ("a", "c"):
        waiting = asyncio.create_task(slots.acquire(requester))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    for requester in ("a", "b"):
        slots.release(requester)
    assert slots._shares == {}
    for requester in ("a", "b"):
        async with asyncio.timeout(1000):
            await slots.acquire(requester)


async def test_the_requesters_of_one_pod_leave_a_slot_to_others() -> None:
    """However many they are, and whichever pods one requester works on."""
    slots = FairSemaphore(4, wait_s=AT_ONCE_S, refusal="Too many")
    for number in range(3):
        await slots.acquire(f"address {number}", pod="/alice/")
    with pytest.raises(Overloaded):
        await slots.acquire("address 4", pod="/alice/")
    await slots.acquire("owner", pod="/bob/")
    slots.release("address 0", pod="/alice/")
    await slots.acquire("address 4", pod="/alice/")


async def test_many_requests_of_one_requester_do_not_wait_before_others_of_the_pod() -> None:
    slots = FairSemaphore(4, wait_s=1000, refusal="Too many")
    for _ in range(2):
        await slots.acquire("stranger", pod="/alice/")
    waiting = [asyncio.create_task(slots.acquire("stranger", pod="/alice/")) for _ in range(9)]
    await asyncio.sleep(0)
    await slots.acquire("owner", pod="/alice/")
    for each in waiting:
        each.cancel()


# --- request scheduling ------------------------------------------------------------------------
#
# How does the HTTP server hand over a request? By the queue of the event loop and not otherwise.
# One look at the store serves a turn of the loop (``storage/sqlite/row_changes.py``), so a
# request must not begin inside a callback that was queued before it arrived. This is what the
# server runs for each request, in one of its threads.


class Watcher:
    """What the HTTP server keeps of a request that is being answered."""

    def taskref(self, task: asyncio.Task[None]) -> None:
        self.task = task


async def test_a_request_begins_in_a_callback_that_is_queued_when_it_arrives() -> None:
    begun: list[str] = []

    async def answer(_: Watcher) -> None:
        begun.append("request")

    loop, arrived = asyncio.get_running_loop(), Watcher()
    loop.call_soon(begun.append, "queued before")
    _futures._cbsched_aioschedule(loop, copy_context(), answer)(arrived)  # type: ignore[no-untyped-call]
    assert begun == []
    await asyncio.sleep(0)
    assert begun == ["queued before"]
    await arrived.task
    assert begun == ["queued before", "request"]
