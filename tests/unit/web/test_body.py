"""A body is received completely, within its limit and in time, or not at all (P-54)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from podstead.core.errors import BadRequest, BodyTimeout, BodyTooLarge
from podstead.web.asgi import HeaderFields, Message
from podstead.web.body import AsgiBody, BodyPace, Deadlines
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
