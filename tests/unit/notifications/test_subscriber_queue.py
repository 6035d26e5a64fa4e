"""A subscriber queue keeps the order and its limit, and says why it ended."""

from __future__ import annotations

import asyncio

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.notifications.deliveries import EndReason, QueueClosed, SubscriberQueue, Watch
from podstead.notifications.readers import Subscriber


async def test_letters_come_in_their_order() -> None:
    queue = SubscriberQueue(capacity=3)
    for text in ("a", "b", "c"):
        queue.put(text)
    assert [await queue.next() for _ in range(3)] == ["a", "b", "c"]


async def test_a_reader_waits_for_the_next_letter() -> None:
    queue = SubscriberQueue(capacity=1)
    reading = asyncio.create_task(queue.next())
    await asyncio.sleep(0)
    queue.put("a")
    assert await reading == "a"


async def test_a_wait_that_was_given_up_loses_nothing() -> None:
    queue = SubscriberQueue(capacity=2)
    reading = asyncio.create_task(queue.next())
    await asyncio.sleep(0)
    reading.cancel()
    queue.put("a")
    await asyncio.gather(reading, return_exceptions=True)
    assert await queue.next() == "a"


async def test_as_many_letters_may_wait_as_its_capacity() -> None:
    """N-31."""
    queue = SubscriberQueue(capacity=2)
    queue.put("a")
    queue.put("b")
    assert queue.ending is None
    queue.put("c")
    with pytest.raises(QueueClosed) as closed:
        await queue.next()
    assert closed.value.ending is EndReason.SLOW


async def test_a_waiting_reader_is_woken_at_the_end() -> None:
    queue = SubscriberQueue(capacity=1)
    reading = asyncio.create_task(queue.next())
    await asyncio.sleep(0)
    queue.close(EndReason.STOPPING)
    with pytest.raises(QueueClosed):
        await reading
    assert queue.ending is EndReason.STOPPING


def test_its_watches_are_closed_with_it_once() -> None:
    queue, closed = SubscriberQueue(capacity=1), list[Watch]()
    attached, detached, late = (
        Watch(ResourcePath(f"/{name}"), Subscriber(), queue, 0, closed.append)
        for name in ("attached", "detached", "late")
    )
    queue.attach(attached)
    queue.attach(detached)
    queue.detach(detached)
    queue.close()
    queue.close(EndReason.SLOW)
    queue.attach(late)
    assert closed == [attached, late]
    assert queue.ending is EndReason.CLOSED
    queue.put("too late")
