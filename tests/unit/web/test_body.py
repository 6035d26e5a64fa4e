"""A body is taken in whole, within its limit and in time, or not at all (P-54)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from podstead.core.errors import BadRequest, BodyTimeout, BodyTooLarge
from podstead.web.asgi import Message
from podstead.web.body import AsgiBody
from podstead.web.fields import HeaderFields

GONE: Message = {"type": "http.disconnect"}


def part(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


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
    return AsgiBody(receive, HeaderFields(fields), idle_timeout_s=0.02)


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
async def test_what_stops_arriving_is_given_up(arriving: list[Message]) -> None:
    """The client is still there, so this is no early end."""
    with pytest.raises(BodyTimeout):
        await body(arriving, length="4").read(limit_bytes=10)


@pytest.mark.parametrize("arriving", [[GONE], [part(b"ab"), GONE], [part(b"abcd"), GONE]])
async def test_a_client_that_leaves_has_sent_nothing(arriving: list[Message]) -> None:
    """T-110: even if all announced bytes are there, it did not say that it was done."""
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
def test_whether_content_is_announced_is_told_by_the_headers(
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
async def test_where_no_header_tells_the_first_message_does_and_is_not_lost(
    first: list[Message], announced: bool, content: bytes
) -> None:
    """HTTP/2 has no chunked encoding to announce a body with."""
    sent = body(first)
    await sent.look_ahead()
    assert sent.announced is announced
    assert await sent.read(limit_bytes=10) == content
