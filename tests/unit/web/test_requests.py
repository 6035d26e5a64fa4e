"""The last message of a request is recognized without waiting for another one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import RateLimited
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.notifications.deliveries import EndReason
from podstead.web.access_log import AccessLog
from podstead.web.asgi import HeaderFields, Message, Scope
from podstead.web.body import AsgiBody, BodyPace, RequestReceiver
from podstead.web.websocket import OpenSockets
from tests.support.clock import FakeClock

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


# --- access log --------------------------------------------------------------------------------
#
# No request can forge a line of the access log, and samples are as large as they should be.


COMMON_LOG_FORMAT = re.compile(
    rb"(\S+) (\S+) (\S+) \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    rb'"([^"\\]*(?:\\.[^"\\]*)*)" (\d{3}) (\d+|-) (\S+)\n'
)
"""As the documentation of Apache's mod_log_config gives it, with one field more."""


def scope(path: str, query: bytes = b"", method: str = "GET") -> dict[str, Any]:
    return {"path": path, "query_string": query, "method": method, "http_version": "1.1"}


def lines_of(form: str, percent: int, *requests: tuple[dict[str, Any], int]) -> list[bytes]:
    lines: list[bytes] = []
    log = AccessLog(lines.append, clock=FakeClock(), form=form, percent=percent)
    for sent, status in requests:
        log.note(
            sent,
            request_id="r-1",
            client_address="192.0.2.1",
            agent="https://alice.example/#me",
            status=status,
            sent_bytes=5,
            duration_s=0.0123,
        )
    return lines


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(TEXTS, TEXTS)
def test_whatever_a_client_sends_is_one_field_of_one_line(path: str, method: str) -> None:
    (line,) = lines_of("common", 100, (scope(path, method=method), 200))
    assert line.count(b"\n") == 1
    found = COMMON_LOG_FORMAT.fullmatch(line)
    assert found is not None
    assert found[1] == b"192.0.2.1"
    assert found[3] == b"https://alice.example/#me"
    assert found[5].endswith(b" HTTP/1.1")
    assert (found[6], found[8]) == (b"200", b"r-1")
    (line,) = lines_of("json", 100, (scope(path, method=method), 200))
    assert line.count(b"\n") == 1
    entry = json.loads(line)
    assert entry["client_address"] == "192.0.2.1"
    assert entry["duration_ms"] == 12.3


@pytest.mark.parametrize("percent", [1, 7, 33, 50, 99, 100])
def test_of_a_hundred_requests_as_many_are_logged_as_was_set(percent: int) -> None:
    assert len(lines_of("json", percent, *[(scope("/"), 200)] * 300)) == 3 * percent


def test_errors_of_the_server_are_always_logged() -> None:
    lines = lines_of("json", 1, *[(scope("/"), status) for status in (200, 503, 404, 500)])
    assert [json.loads(line)["status"] for line in lines] == [503, 500]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/.pages/link/0af62c8bf11c5ae9", "/.pages/link/..."),
        ("/idp/interaction/secret/confirm", "/idp/interaction/..."),
        ("/alice/notes/a.ttl", "/alice/notes/a.ttl"),
    ],
)
def test_secrets_in_paths_and_queries_are_left_out(path: str, shown: str) -> None:
    (line,) = lines_of("json", 100, (scope(path, b"code=secret"), 200))
    assert json.loads(line)["path"] == f"{shown}?..."
    assert b"secret" not in line


# --- Open sockets are limited, and are closed when the server stops (N-31) ---------------------


ALICE = Identity("https://alice.example/#me", AuthenticationMethod.DPOP)


def sockets(per_address: int = 0, per_agent: int = 0) -> OpenSockets:
    return OpenSockets(per_address=per_address, per_agent=per_agent, queue_capacity=5)


def test_an_address_has_its_places_back_when_listeners_leave() -> None:
    opened = sockets(per_address=2)
    for _ in range(3):
        with opened.admit("192.0.2.1", None), opened.admit("192.0.2.1", None):
            with pytest.raises(RateLimited), opened.admit("192.0.2.1", None):
                pass
            with opened.admit("192.0.2.2", None):
                pass


def test_addresses_of_one_customer_count_as_one() -> None:
    """A-181: an IPv6 customer has a /64."""
    opened = sockets(per_address=1)
    with opened.admit("2001:db8::1", None):
        with pytest.raises(RateLimited), opened.admit("2001:db8::2", None):
            pass
        with opened.admit("2001:db8:0:1::1", None):
            pass


def test_an_agent_is_counted_wherever_it_comes_from() -> None:
    opened = sockets(per_agent=1)
    with opened.admit("192.0.2.1", ALICE):
        with pytest.raises(RateLimited), opened.admit("192.0.2.2", ALICE):
            pass
        with opened.admit("192.0.2.1", None), opened.admit("192.0.2.1", None):
            pass


async def test_stopping_waits_until_every_listener_has_gone() -> None:
    """Also after a time at which there was none."""
    opened = sockets()
    with opened.admit("192.0.2.1", None):
        pass
    with ExitStack() as first, ExitStack() as second:
        boxes = [stack.enter_context(opened.admit("192.0.2.1", None)) for stack in (first, second)]
        draining = asyncio.create_task(opened.drain())
        await asyncio.sleep(0)
        assert [queue.ending for queue in boxes] == [EndReason.STOPPING] * 2
        first.close()
        await asyncio.sleep(0)
        assert not draining.done()
        second.close()
        await draining


async def test_a_client_that_connects_while_the_server_stops_is_closed_at_once() -> None:
    opened = sockets()
    await opened.drain()
    with opened.admit("192.0.2.1", None) as queue:
        assert queue.ending is EndReason.STOPPING
