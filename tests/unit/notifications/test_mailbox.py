"""A mailbox keeps order and bounds, and tells why it ended."""

from __future__ import annotations

import asyncio

import pytest

from podstead.notifications.mailbox import Ending, Mailbox, MailboxClosed


class Filler:
    """Counts how often it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


async def test_letters_come_in_their_order() -> None:
    mailbox = Mailbox(capacity=3)
    for text in ("a", "b", "c"):
        mailbox.put(text)
    assert [await mailbox.next() for _ in range(3)] == ["a", "b", "c"]


async def test_a_reader_waits_for_the_next_letter() -> None:
    mailbox = Mailbox(capacity=1)
    reading = asyncio.create_task(mailbox.next())
    await asyncio.sleep(0)
    mailbox.put("a")
    assert await reading == "a"


async def test_a_wait_that_was_given_up_loses_nothing() -> None:
    mailbox = Mailbox(capacity=2)
    reading = asyncio.create_task(mailbox.next())
    await asyncio.sleep(0)
    reading.cancel()
    mailbox.put("a")
    await asyncio.gather(reading, return_exceptions=True)
    assert await mailbox.next() == "a"


async def test_as_many_letters_may_wait_as_its_capacity() -> None:
    """N-31."""
    mailbox = Mailbox(capacity=2)
    mailbox.put("a")
    mailbox.put("b")
    assert mailbox.ending is None
    mailbox.put("c")
    with pytest.raises(MailboxClosed) as closed:
        await mailbox.next()
    assert closed.value.ending is Ending.SLOW


async def test_a_reader_that_waits_hears_of_the_end() -> None:
    mailbox = Mailbox(capacity=1)
    reading = asyncio.create_task(mailbox.next())
    await asyncio.sleep(0)
    mailbox.close(Ending.STOPPING)
    with pytest.raises(MailboxClosed):
        await reading
    assert mailbox.ending is Ending.STOPPING


def test_what_fills_it_ends_with_it_once() -> None:
    mailbox, attached, detached, late = Mailbox(capacity=1), Filler(), Filler(), Filler()
    mailbox.attach(attached)
    mailbox.attach(detached)
    mailbox.detach(detached)
    mailbox.close()
    mailbox.close(Ending.SLOW)
    mailbox.attach(late)
    assert (attached.closed, detached.closed, late.closed) == (1, 0, 1)
    assert mailbox.ending is Ending.CLOSED
    mailbox.put("too late")
