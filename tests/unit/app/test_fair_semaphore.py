"""Who has to wait for a slot, and who does not although others are slow."""

from __future__ import annotations

import asyncio

import pytest

from podstead.app.adapters.fair_semaphore import FairSemaphore
from podstead.core.errors import Overloaded

AT_ONCE_S = 0.001


@pytest.mark.parametrize(("most", "of_one"), [(1, 1), (2, 1), (3, 2), (8, 4)])
async def test_nobody_has_more_than_half(most: int, of_one: int) -> None:
    slots = FairSemaphore(most, wait_s=AT_ONCE_S, refusal="Too many")
    for _ in range(of_one):
        await slots.take("slow")
    with pytest.raises(Overloaded):
        await slots.take("slow")
    for _ in range(most - of_one):
        await slots.take("other")
    with pytest.raises(Overloaded):
        await slots.take("third")


async def test_a_waiting_requester_gets_a_returned_slot() -> None:
    slots = FairSemaphore(2, wait_s=1000, refusal="Too many")
    await slots.take("a")
    waiting = asyncio.create_task(slots.take("a"))
    await slots.take("b")
    assert not waiting.done()
    slots.give_back("a")
    await waiting
    slots.give_back("a")
    slots.give_back("b")
    await slots.take("c")


async def test_cancelled_waiters_leave_nothing_behind() -> None:
    """Whether it is refused or cancelled, for a slot of its own share or of all."""
    slots = FairSemaphore(2, wait_s=1000, refusal="Too many")
    await slots.take("a")
    await slots.take("b")
    for requester in ("a", "c"):
        waiting = asyncio.create_task(slots.take(requester))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    for requester in ("a", "b"):
        slots.give_back(requester)
    assert slots._shares == {}
    for requester in ("a", "b"):
        async with asyncio.timeout(1000):
            await slots.take(requester)


async def test_the_requesters_of_one_pod_leave_a_slot_to_others() -> None:
    """However many they are, and whichever pods one requester works on."""
    slots = FairSemaphore(4, wait_s=AT_ONCE_S, refusal="Too many")
    for number in range(3):
        await slots.take(f"address {number}", pod="/alice/")
    with pytest.raises(Overloaded):
        await slots.take("address 4", pod="/alice/")
    await slots.take("owner", pod="/bob/")
    slots.give_back("address 0", pod="/alice/")
    await slots.take("address 4", pod="/alice/")


async def test_many_requests_of_one_requester_do_not_wait_before_others_of_the_pod() -> None:
    slots = FairSemaphore(4, wait_s=1000, refusal="Too many")
    for _ in range(2):
        await slots.take("stranger", pod="/alice/")
    waiting = [asyncio.create_task(slots.take("stranger", pod="/alice/")) for _ in range(9)]
    await asyncio.sleep(0)
    await slots.take("owner", pod="/alice/")
    for each in waiting:
        each.cancel()
