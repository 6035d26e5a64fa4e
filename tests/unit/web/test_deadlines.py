"""Waits for clients end in time, whoever else waits, on a clock that is moved."""

from __future__ import annotations

import asyncio

import pytest

from podstead.web.body import Deadlines
from tests.support.clock import FakeClock


class Waiting:
    """A task that waits, and the deadlines of a clock of its own."""

    def __init__(self) -> None:
        self.clock = FakeClock(0)
        self.deadlines = Deadlines(period_s=0.001, now_s=self.clock.monotonic_s)

    async def wait(self, timeout_s: float, until: asyncio.Event) -> None:
        with self.deadlines.wait(timeout_s):
            await until.wait()


async def until_given_up(task: asyncio.Task[None]) -> None:
    """Until the timer has ended the wait; the test's own timeout ends one that is never ended."""
    with pytest.raises(TimeoutError):
        await task


async def test_each_wait_ends_at_its_own_deadline() -> None:
    """Also one that begins while the timer is running, and one that would end before it."""
    waiting, never = Waiting(), asyncio.Event()
    long = asyncio.create_task(waiting.wait(10, never))
    await asyncio.sleep(0)
    short = asyncio.create_task(waiting.wait(5, never))
    await asyncio.sleep(0)
    waiting.clock.advance(5)
    await until_given_up(short)
    assert not long.done()
    waiting.clock.advance(4.9)
    other = asyncio.create_task(waiting.wait(0, never))
    await until_given_up(other)
    assert not long.done()
    waiting.clock.advance(0.1)
    await until_given_up(long)


async def test_a_wait_that_has_ended_is_not_given_up_later() -> None:
    """The task goes on to other things, which the deadline is not about."""
    waiting, arrived, never = Waiting(), asyncio.Event(), asyncio.Event()

    async def wait_and_go_on() -> None:
        await waiting.wait(5, arrived)
        await never.wait()

    going_on = asyncio.create_task(wait_and_go_on())
    await asyncio.sleep(0)
    arrived.set()
    await asyncio.sleep(0)
    waiting.clock.advance(100)
    await until_given_up(asyncio.create_task(waiting.wait(0, never)))
    assert not going_on.done()
    going_on.cancel()


async def test_the_timer_restarts_after_nobody_has_waited() -> None:
    waiting = Waiting()
    for _ in range(3):
        wait = asyncio.create_task(waiting.wait(0, asyncio.Event()))
        await until_given_up(wait)


async def test_a_task_that_others_cancel_does_not_take_it_for_a_timeout() -> None:
    """The server is stopping, and the request must end."""
    waiting = Waiting()
    cancelled = asyncio.create_task(waiting.wait(5, asyncio.Event()))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_a_task_that_others_cancel_while_it_is_given_up_is_cancelled() -> None:
    waiting = Waiting()
    tasks: list[asyncio.Task[None]] = []

    async def wait_and_be_cancelled() -> None:
        with waiting.deadlines.wait(0):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                tasks[0].cancel()
                raise

    tasks.append(asyncio.create_task(wait_and_be_cancelled()))
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]


async def test_a_task_that_was_given_up_can_wait_again() -> None:
    """The cancellation is taken back, or the next wait would end at once."""
    waiting, arrived = Waiting(), asyncio.Event()

    async def wait_twice() -> int:
        with pytest.raises(TimeoutError):
            await waiting.wait(0, asyncio.Event())
        arrived.set()
        await waiting.wait(5, arrived)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert await wait_twice() == 0
