"""What runs in the background goes on after any error, and ends when it is told to."""

import asyncio
import logging

import pytest

from podstead.core.background import Background, cancel_and_wait

LOGGER = logging.getLogger("podstead.test")
DEADLINE_S = 30


class Unforeseen(Exception):
    """What no step expects."""


async def test_it_goes_on_after_an_exception_that_nobody_foresaw(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps: list[int] = []
    done = asyncio.Event()

    async def step() -> None:
        steps.append(len(steps))
        if len(steps) <= 2:
            raise Unforeseen
        done.set()

    background = Background(step, LOGGER, "It could not be done", again_s=0)
    background.start()
    async with asyncio.timeout(DEADLINE_S):
        await done.wait()
    await background.stop()
    assert caplog.text.count("It could not be done; it is tried again") == 2
    assert "Unforeseen" in caplog.text


async def test_it_repeats_the_step_at_intervals() -> None:
    left = 3
    done = asyncio.Event()

    async def step() -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    background = Background(step, LOGGER, "failed", every_s=0.001)
    background.start(at_once=False)
    async with asyncio.timeout(DEADLINE_S):
        await done.wait()
    await background.stop()


async def test_waking_during_a_step_has_it_done_once_more() -> None:
    begun, go_on, again = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def step() -> None:
        if begun.is_set():
            again.set()
        begun.set()
        await go_on.wait()

    background = Background(step, LOGGER, "failed")
    background.start(at_once=False)
    background.wake()
    async with asyncio.timeout(DEADLINE_S):
        await begun.wait()
        background.wake()
        background.wake()
        go_on.set()
        await again.wait()
    await background.stop()


async def test_stopping_waits_for_the_step_and_then_does_what_is_last() -> None:
    order: list[str] = []
    begun = asyncio.Event()

    async def step() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            order.append("step")

    async def last() -> None:
        order.append("last")

    background = Background(step, LOGGER, "failed", at_end=last)
    background.start()
    background.start()
    await begun.wait()
    await background.stop()
    await background.stop()
    assert order == ["step", "last"]


async def test_an_error_at_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def nothing() -> None:
        pass

    async def last() -> None:
        raise Unforeseen

    background = Background(nothing, LOGGER, "It could not be done", at_end=last)
    background.start()
    await background.stop()
    assert "It could not be done at the end" in caplog.text


async def test_a_cancellation_of_whoever_waits_comes_through() -> None:
    begun, ending, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()

    task = asyncio.create_task(slow_to_end())
    await begun.wait()
    stopping = asyncio.create_task(cancel_and_wait([task]))
    await ending.wait()
    stopping.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await asyncio.wait([task])
