"""A body is received completely, within its limit and in time, or not at all (P-54)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import pytest

from podstead.core.errors import BadRequest, BodyTimeout, BodyTooLarge, NotAuthenticated
from podstead.web.asgi import HeaderFields, Message
from podstead.web.body import AsgiBody, BodyPace, Deadlines, RecheckedBody
from tests.support.clock import FakeClock

GONE: Message = {"type": "http.disconnect"}


def part(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


def impatient() -> BodyPace:
    return BodyPace(0.02, 100, Deadlines(period_s=0.01))


def body(
    messages: Iterable[Message], *, length: str | None = None, chunked: bool = False
) -> AsgiBody:
    """A body of which these messages arrive, and then nothing more for ever."""
    arriving = iter(messages)

    async def receive() -> Message:
        for message in arriving:
            return message
        await asyncio.Event().wait()
        raise AssertionError

    fields = [(b"transfer-encoding", b"chunked")] if chunked else []
    if length is not None:
        fields.append((b"content-length", length.encode()))
    return AsgiBody(receive, HeaderFields(fields), pace=impatient())


async def test_pieces_are_put_together_in_order() -> None:
    sent = body([part(b"ab"), part(b""), part(b"cd"), part(b"", more=False)], length="4")
    assert await sent.read(limit_bytes=4) == b"abcd"


async def test_a_body_without_length_ends_where_it_ends() -> None:
    sent = body([part(b"ab"), part(b"cd", more=False)], chunked=True)
    assert [chunk async for chunk in sent.chunks(limit_bytes=4)] == [b"ab", b"cd"]


async def test_an_announced_length_beyond_the_limit_is_refused_before_anything_arrives() -> None:
    with pytest.raises(BodyTooLarge, match="10 bytes"):
        await body([], length="11").read(limit_bytes=10)


async def test_more_than_the_limit_is_refused_as_soon_as_it_arrives() -> None:
    sent = body([part(b"x" * 10), part(b"x")], chunked=True)
    with pytest.raises(BodyTooLarge):
        await sent.read(limit_bytes=10)


@pytest.mark.parametrize("arriving", [[], [part(b"ab")], [part(b"")]])
async def test_a_body_that_stops_arriving_is_aborted(arriving: list[Message]) -> None:
    """The client is still there, so this is no early end."""
    with pytest.raises(BodyTimeout):
        await body(arriving, length="4").read(limit_bytes=10)


@pytest.mark.parametrize("arriving", [[GONE], [part(b"ab"), GONE], [part(b"abcd"), GONE]])
async def test_a_client_that_leaves_has_sent_nothing(arriving: list[Message]) -> None:
    """Even if all announced bytes are there, it did not say that it was done."""
    with pytest.raises(BadRequest):
        await body(arriving, length="4").read(limit_bytes=10)


@pytest.mark.parametrize("content", [b"abc", b"abcde", b""])
async def test_another_length_than_announced_is_refused(content: bytes) -> None:
    with pytest.raises(BadRequest):
        await body([part(content, more=False)], length="4").read(limit_bytes=10)


@pytest.mark.parametrize(
    "length", ["", "-1", "+1", "1.0", "0x1", "1e3", "1 2", "4,4", "\u00b2", "9" * 20, "9" * 5000]
)
def test_a_length_is_a_number_that_can_be(length: str) -> None:
    with pytest.raises(BadRequest):
        body([], length=length)


@pytest.mark.parametrize(
    ("length", "chunked", "announced"),
    [(None, False, False), ("0", False, False), ("1", False, True), (None, True, True)],
)
def test_the_headers_say_whether_content_follows(
    length: str | None, chunked: bool, announced: bool
) -> None:
    """P-7: a request without a length and without chunks has no content."""
    assert body([], length=length, chunked=chunked).announced is announced


@pytest.mark.parametrize(
    ("first", "announced", "content"),
    [
        ([part(b"", more=False)], False, b""),
        ([part(b"ab", more=False)], True, b"ab"),
        ([part(b""), part(b"ab", more=False)], True, b"ab"),
    ],
)
async def test_without_a_length_the_first_message_decides_and_is_not_lost(
    first: list[Message], announced: bool, content: bytes
) -> None:
    """HTTP/2 has no chunked encoding to announce a body with."""
    sent = body(first)
    await sent.look_ahead()
    assert sent.announced is announced
    assert await sent.read(limit_bytes=10) == content


# --- how slowly it may come ---------------------------------------------------------------------


class Sender:
    """Sends pieces, each a while after it is asked for the next; on a clock of its own."""

    def __init__(self, *pieces: tuple[float, int]) -> None:
        self.clock = FakeClock(0)
        self._pieces = iter(pieces)

    async def receive(self) -> Message:
        after_s, size_bytes = next(self._pieces, (0.0, -1))
        self.clock.advance(after_s)
        return part(b"x" * size_bytes) if size_bytes >= 0 else part(b"", more=False)

    def body(self, *, idle_timeout_s: float = 30, min_bytes_per_s: float = 100) -> AsgiBody:
        fields = HeaderFields([(b"transfer-encoding", b"chunked")])
        pace = BodyPace(idle_timeout_s, min_bytes_per_s)
        return AsgiBody(self.receive, fields, pace=pace, now_s=self.clock.monotonic_s)


HONEST: list[list[tuple[float, int]]] = [
    [(30, 1)],
    [(10, 1), (10, 1), (10, 1)],
    [(1, 100)] * 10_000,
    [(20, 2000)] * 1000,
    [(29, 65536)] * 1000,
    [(0, 1)] * 1000,
    [(0, 10_000_000), (30, 1)],
]


@pytest.mark.parametrize("pieces", HONEST, ids=range(len(HONEST)))
async def test_a_body_may_come_at_the_least_rate_and_stop_for_a_while(
    pieces: list[tuple[float, int]],
) -> None:
    total_bytes = sum(size for _, size in pieces)
    content = await Sender(*pieces).body().read(limit_bytes=total_bytes)
    assert len(content) == total_bytes


DRIPPING: list[tuple[list[tuple[float, int]], float]] = [
    ([(30.1, 1)], 30.1),
    ([(10, 1)] * 100, 40),
    ([(1, 1)] * 100_000, 31),
    ([(1, 99)] * 100_000, 2902),
    ([(0, 100_000_000), *[(29, 1)] * 100], 58),
    ([(10, 0)] * 100, 40),
]


@pytest.mark.parametrize(("pieces", "until_s"), DRIPPING, ids=range(len(DRIPPING)))
async def test_a_body_that_drips_is_given_up_soon(
    pieces: list[tuple[float, int]], until_s: float
) -> None:
    """However much came at once before; no piece of it is taken for all."""
    sender = Sender(*pieces)
    taken = sender.body().chunks(limit_bytes=10**9)
    with pytest.raises(BodyTimeout, match="100 bytes per second"):
        async for _ in taken:
            pass
    assert sender.clock.monotonic_s() == pytest.approx(until_s, abs=2)


async def test_a_server_that_takes_its_time_does_not_blame_the_sender() -> None:
    """What counts is how long the server has waited, not how long it was busy."""
    sender = Sender(*[(0, 10)] * 5)
    async for _ in sender.body().chunks(limit_bytes=100):
        sender.clock.advance(60)


async def test_the_rate_can_be_switched_off() -> None:
    sender = Sender(*[(29, 1)] * 1000)
    assert len(await sender.body(min_bytes_per_s=0).read(limit_bytes=1000)) == 1000


@pytest.mark.parametrize("announced", [True, False])
async def test_nothing_that_comes_in_pieces_is_waited_for_longer_than_there_is_patience(
    announced: bool,
) -> None:
    """The wait itself ends in time, whether or not the body is looked at ahead."""
    pieces = iter([part(b"ab")])

    async def receive() -> Message:
        for piece in pieces:
            return piece
        await asyncio.Event().wait()
        raise AssertionError

    slow = AsgiBody(receive, HeaderFields([]), pace=impatient())
    if not announced:
        await slow.look_ahead()
    with pytest.raises(BodyTimeout):
        await slow.read(limit_bytes=10)


# --- rechecked body ----------------------------------------------------------------------------
#
# How often the credentials are checked while a body arrives, with a clock that tests move.


PIECES = [b"a", b"b", b"c", b"d", b"e"]


@dataclass
class SlowBody:
    """Pieces, each of which comes so long after the one before."""

    clock: FakeClock
    pause_s: float
    announced: bool = True
    size_bytes: int | None = None

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        assert len(PIECES) < limit_bytes
        for piece in PIECES:
            self.clock.advance(self.pause_s)
            yield piece

    async def read(self, *, limit_bytes: int) -> bytes:
        return b"".join([piece async for piece in self.chunks(limit_bytes=limit_bytes)])


@dataclass
class CheckedSender:
    """Who is refused from the given look on."""

    refused_at: int | None = None
    looks: int = field(default=0)

    async def check_again(self) -> None:
        self.looks += 1
        if self.looks == self.refused_at:
            raise NotAuthenticated("Invalid token", invalid=True)


def late(sender: CheckedSender, *, pause_s: float) -> RecheckedBody:
    clock = FakeClock()
    return RecheckedBody(SlowBody(clock, pause_s), check_again=sender.check_again, clock=clock)


@pytest.mark.parametrize(
    ("pause_s", "looks"), [(0, 0), (0.1, 0), (0.6, 2), (1, 5), (100, 5), (-1, 5)]
)
async def test_the_sender_is_looked_at_once_a_second(pause_s: float, looks: int) -> None:
    """Also where the clock is set back, for it tells nothing then."""
    sender = CheckedSender()
    body = late(sender, pause_s=pause_s)
    assert [piece async for piece in body.chunks(limit_bytes=9)] == PIECES
    assert sender.looks == looks


async def test_nothing_that_comes_after_a_revocation_is_handed_on() -> None:
    """Who takes it may act on it before it has ended, as git does with a push (A-33)."""
    pieces = late(CheckedSender(refused_at=3), pause_s=1).chunks(limit_bytes=9)
    assert [await anext(pieces), await anext(pieces)] == PIECES[:2]
    with pytest.raises(NotAuthenticated):
        await anext(pieces)


async def test_a_body_that_is_read_whole_is_looked_at_when_it_is_there() -> None:
    sender = CheckedSender()
    assert await late(sender, pause_s=1).read(limit_bytes=9) == b"abcde"
    assert sender.looks == 1
    with pytest.raises(NotAuthenticated):
        await late(CheckedSender(refused_at=1), pause_s=1).read(limit_bytes=9)


# --- Waits for clients end in time, whoever else waits, on a clock that is moved ---------------


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
