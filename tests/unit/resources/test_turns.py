"""Writers of one resource queue, those of different ones do not, and nobody is left waiting."""

from __future__ import annotations

import asyncio

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.resources.turns import Turns

ONE, OTHER = ResourcePath("/alice/one"), ResourcePath("/alice/other")


async def test_one_writes_at_a_time_in_the_order_of_coming() -> None:
    turns, order, writing = Turns(), list[int](), list[int]()

    async def write(number: int) -> bool:
        async with turns.of(ONE) as had_to_wait:
            assert writing == []
            writing.append(number)
            await asyncio.sleep(0)
            writing.remove(number)
            order.append(number)
            return had_to_wait

    waited = await asyncio.gather(*(write(number) for number in range(20)))
    assert order == list(range(20))
    assert waited == [False] + [True] * 19


async def test_other_resources_are_written_meanwhile() -> None:
    turns = Turns()
    async with turns.of(ONE) as first, turns.of(OTHER) as second:
        assert (first, second) == (False, False)


async def test_a_writer_that_fails_or_is_cancelled_gives_its_turn_back() -> None:
    turns = Turns()

    async def hold() -> None:
        async with turns.of(ONE):
            await asyncio.Event().wait()

    async def fail() -> None:
        async with turns.of(ONE):
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
    async with turns.of(ONE) as had_to_wait:
        assert not had_to_wait


async def test_nothing_is_remembered_of_resources_that_nobody_writes() -> None:
    turns = Turns()
    for number in range(100):
        async with turns.of(ResourcePath(f"/alice/{number}")):
            assert len(turns._locks) == len(turns._writers) == 1
    assert turns._locks == {}
    assert turns._writers == {}
