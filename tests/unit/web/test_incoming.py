"""The last message of a request is recognized without waiting for another one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from podstead.web.asgi import HeaderFields, Message, Scope
from podstead.web.body import AsgiBody, BodyPace, RequestReceiver

LENGTH = (b"content-length", b"4")
CHUNKED = (b"transfer-encoding", b"chunked")


def part(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


END = part(b"", more=False)


class Sender:
    """Sends these messages, each when it is asked for, and counts them."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._messages = iter(messages)
        self.sent = 0

    async def receive(self) -> Message:
        for message in self._messages:
            self.sent += 1
            return message
        await asyncio.Event().wait()
        raise AssertionError


def request(
    sender: Sender, *headers: tuple[bytes, bytes], version: str = "1.1"
) -> tuple[RequestReceiver, AsgiBody]:
    scope: Scope = {"type": "http", "http_version": version, "headers": list(headers)}
    incoming = RequestReceiver(sender.receive, scope)
    return incoming, AsgiBody(incoming, HeaderFields(headers), pace=BodyPace(30))


@pytest.mark.parametrize("pieces", [[b"abcd"], [b"ab", b"cd"], [b"", b"abc", b"d"]])
async def test_a_body_that_has_its_length_is_complete(pieces: list[bytes]) -> None:
    """RFC 9112 section 6.3."""
    sender = Sender([*map(part, pieces), END])
    incoming, body = request(sender, LENGTH)
    assert await body.read(limit_bytes=4) == b"abcd"
    await incoming.linger()
    assert sender.sent == len(pieces)


async def test_the_rest_of_a_body_is_received_up_to_its_length() -> None:
    sender = Sender([part(b"ab"), part(b"cd"), END])
    incoming, _ = request(sender, LENGTH)
    await incoming.linger()
    assert sender.sent == 2


@pytest.mark.parametrize(
    ("headers", "version"),
    [([CHUNKED], "1.1"), ([LENGTH, CHUNKED], "1.1"), ([LENGTH], "2"), ([], "2")],
    ids=["chunked", "chunked with a length", "HTTP/2 with a length", "HTTP/2"],
)
async def test_otherwise_the_http_server_says_where_a_body_ends(
    headers: list[tuple[bytes, bytes]], version: str
) -> None:
    """RFC 9112 section 6.3 and RFC 9113 section 8.1: there, all bytes do not make a whole body."""
    sender = Sender([part(b"abcd"), END])
    incoming, body = request(sender, *headers, version=version)
    assert await body.read(limit_bytes=4) == b"abcd"
    await incoming.linger()
    assert sender.sent == 2


@pytest.mark.parametrize("length", [b"", b"-4", b"\xb2", b"4,4", b"9" * 5000])
async def test_a_length_that_is_no_number_says_nothing(length: bytes) -> None:
    sender = Sender([part(b"abcd"), END])
    scope: Scope = {"http_version": "1.1", "headers": [(b"content-length", length)]}
    incoming = RequestReceiver(sender.receive, scope)
    assert (await incoming())["more_body"]
    await incoming.linger()
    assert sender.sent == 2
