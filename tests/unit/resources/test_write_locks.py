"""Writers of one resource queue, those of different ones do not, and nobody is left waiting."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.resources.write_locks import WriteLocks
from podstead.storage.records import Metadata, ResourceKind, Version

ONE, OTHER = ResourcePath("/alice/one"), ResourcePath("/alice/other")


async def test_one_writes_at_a_time_in_the_order_of_coming() -> None:
    locks, order, writing = WriteLocks(), list[int](), list[int]()

    async def write(number: int) -> bool:
        async with locks.of(ONE) as lock:
            assert writing == []
            writing.append(number)
            await asyncio.sleep(0)
            writing.remove(number)
            order.append(number)
            return lock.was_contended

    waited = await asyncio.gather(*(write(number) for number in range(20)))
    assert order == list(range(20))
    assert waited == [False] + [True] * 19


async def test_other_resources_are_written_meanwhile() -> None:
    locks = WriteLocks()
    async with locks.of(ONE) as first, locks.of(OTHER) as second:
        assert not first.was_contended
        assert not second.was_contended


async def test_a_writer_that_fails_or_is_cancelled_gives_its_turn_back() -> None:
    locks = WriteLocks()

    async def hold() -> None:
        async with locks.of(ONE):
            await asyncio.Event().wait()

    async def fail() -> None:
        async with locks.of(ONE):
            raise LookupError("over")

    holder, waiting = asyncio.create_task(hold()), asyncio.create_task(hold())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for task in (waiting, holder):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    with pytest.raises(LookupError, match="over"):
        await fail()
    async with locks.of(ONE) as lock:
        assert not lock.was_contended


async def test_nothing_is_remembered_of_resources_that_nobody_writes() -> None:
    locks = WriteLocks()
    for number in range(100):
        async with locks.of(ResourcePath(f"/alice/{number}")):
            assert len(locks._queues) == 1
    assert locks._queues == {}


def left(version: str) -> Metadata:
    return Metadata(ONE, ResourceKind.DOCUMENT, Version(version), "text/plain", 0, 0, 0)


async def test_the_next_write_gets_the_result_of_the_pending_one() -> None:
    locks = WriteLocks()
    async with locks.of(ONE) as first:
        assert first.expected is None
        first.release_early(left("1"))
        async with locks.of(ONE) as second:
            assert second.was_contended
            assert second.expected == left("1")
            second.release_early(left("2"))
            async with locks.of(ONE) as third:
                assert third.expected == left("2")
            second.mark_committed()
        first.mark_committed()
        async with locks.of(ONE) as fourth:
            assert fourth.expected == left("2")
    async with locks.of(ONE) as later:
        assert later.expected is None, "nothing is under way, so the store tells"


async def test_no_write_builds_on_a_failed_one() -> None:
    locks = WriteLocks()
    async with locks.of(ONE) as first:
        first.release_early(left("1"))
        async with locks.of(ONE) as second:
            second.release_early(left("2"))
        async with locks.of(ONE) as third:
            assert third.expected is None
            third.release_early(left("3"))
            async with locks.of(ONE) as fourth:
                assert fourth.expected == left("3")


async def test_an_old_failure_does_not_affect_later_callers() -> None:
    locks = WriteLocks()
    async with locks.of(ONE) as waiting, AsyncExitStack() as doomed:
        waiting.release_early(left("1"))
        second = await doomed.enter_async_context(locks.of(ONE))
        second.release_early(left("2"))
        async with locks.of(ONE) as third:
            third.release_early(left("3"))
        async with locks.of(ONE) as anew:
            anew.release_early(left("4"))
            await doomed.aclose()
            async with locks.of(ONE) as last:
                assert last.expected == left("4")


async def test_one_is_alone_when_all_writes_under_way_have_ended() -> None:
    locks, alone = WriteLocks(), asyncio.Event()

    async def be_alone() -> None:
        async with locks.of(ONE) as lock:
            await lock.wait_for_pending()
            alone.set()

    async with AsyncExitStack() as writes:
        for version in ("1", "2"):
            lock = await writes.enter_async_context(locks.of(ONE))
            lock.release_early(left(version))
        waiting = asyncio.create_task(be_alone())
        await asyncio.sleep(0)
        assert not alone.is_set()
    await waiting
    assert alone.is_set()
