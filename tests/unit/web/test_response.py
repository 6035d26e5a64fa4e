"""How does a response get its length and type? In one place, by its status and the method."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import podstead.web
from podstead.core import errors
from podstead.core.conditional import Conditions
from podstead.core.errors import (
    MethodNotAllowed,
    NotAuthenticated,
    Overloaded,
    PodsteadError,
    PreconditionFailed,
    RangeNotSatisfiable,
    RateLimited,
    RequestRefused,
    ServerTrouble,
)
from podstead.core.header_fields import ByteRange
from podstead.web.asgi import Headers, Message, Scope
from podstead.web.authentication import AuthenticateChallenges
from podstead.web.errors import INTERNAL_MESSAGE, STATUSES, refusal, status_of
from podstead.web.response import (
    Response,
    conditional_response,
    content_response,
    empty_response,
    json_content_response,
)
from podstead.web.sending import send_response

_WEB = Path(podstead.web.__file__).parent
_BUILDER = _WEB / "response.py"
_FILES = [path for path in sorted(_WEB.rglob("*.py")) if path != _BUILDER]
_CONTENT = b"some content"


def _named(response: Response) -> dict[bytes, bytes]:
    names = [name for name, _ in response.headers]
    assert len(names) == len(set(names))
    return dict(response.headers)


def test_only_the_builder_of_responses_writes_lengths_and_creates_responses() -> None:
    for path in _FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path}, line {getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "Response", where
            if isinstance(node, ast.Tuple):  # as of a header field; a tuple of names is none
                name, *rest = [getattr(each, "value", None) for each in node.elts] or [None]
                assert name != b"content-length" or rest == [b"transfer-encoding"], where


def test_a_response_states_the_type_and_length_of_its_content() -> None:
    response = content_response(
        _CONTENT, "text/plain", method="GET", headers=[(b"cache-control", b"no-store")]
    )
    assert (response.status, response.body) == (200, _CONTENT)
    assert _named(response) == {
        b"content-type": b"text/plain",
        b"content-length": b"12",
        b"cache-control": b"no-store",
    }


def test_a_response_to_head_has_the_fields_of_get_and_no_content() -> None:
    got = content_response(_CONTENT, "text/plain", method="GET")
    headed = content_response(_CONTENT, "text/plain", method="HEAD")
    assert headed.headers == got.headers
    assert headed.body == b""


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_that_has_no_content_has_no_length(status: int) -> None:
    """RFC 9110 section 8.6"""
    assert _named(empty_response(status)) == {}


@pytest.mark.parametrize("status", [200, 303])
def test_an_empty_response_of_another_status_has_length_0(status: int) -> None:
    assert _named(empty_response(status)) == {b"content-length": b"0"}


def test_header_fields_that_are_passed_in_are_not_changed_later() -> None:
    common: Headers = [(b"cache-control", b"no-store")]
    for response in (
        empty_response(204, common),
        content_response(_CONTENT, "text/plain", method="GET", headers=common),
    ):
        response.headers.append((b"vary", b"Accept"))
    assert len(common) == 1


def test_a_range_is_stated_with_its_own_length() -> None:
    response = content_response(
        _CONTENT, "text/plain", method="GET", status=206, byte_range=ByteRange(5, 11)
    )
    assert (response.status, response.first, response.last) == (206, 5, 11)
    fields = _named(response)
    assert fields[b"content-length"] == b"7"
    assert fields[b"content-range"] == b"bytes 5-11/12"


async def _pieces() -> AsyncIterator[bytes]:
    yield _CONTENT


def test_content_that_is_not_in_memory_has_a_length_only_if_it_is_known() -> None:
    unknown = content_response(_pieces(), "text/plain", method="GET")
    known = content_response(_pieces(), "text/plain", method="GET", size_bytes=12)
    assert b"content-length" not in _named(unknown)
    assert _named(known)[b"content-length"] == b"12"


def test_json_is_sent_as_json() -> None:
    response = json_content_response({"a": 1}, status=201)
    assert (response.status, response.body) == (201, b'{"a":1}')
    assert _named(response)[b"content-type"] == b"application/json"


def _conditional(**conditions: str) -> Response:
    return conditional_response(
        _CONTENT,
        "text/plain",
        method="GET",
        etag='"a"',
        conditions=Conditions(**conditions),
        headers=[(b"cache-control", b"no-cache")],
    )


def test_a_client_that_has_the_content_gets_304_with_the_fields_of_200() -> None:
    """RFC 9110 section 15.4.5"""
    response = _conditional(if_none_match='"a"')
    assert (response.status, response.body) == (304, b"")
    assert _named(response) == {b"etag": b'"a"', b"cache-control": b"no-cache"}


def test_a_client_that_has_other_content_gets_this_one() -> None:
    response = _conditional(if_none_match='"b"')
    assert (response.status, response.body) == (200, _CONTENT)
    assert _named(response)[b"etag"] == b'"a"'
    with pytest.raises(PreconditionFailed):
        _conditional(if_match='"b"')


# --- sending -----------------------------------------------------------------------------------
#
# A body that is generated while it is sent: in pieces, as long as the client reads.


SCOPE: Scope = {"extensions": {}}


class Pieces:
    """Numbers, and whether anybody may still ask for more of them."""

    def __init__(self) -> None:
        self.made = 0
        self.closed = False

    async def make(self) -> AsyncIterator[bytes]:
        try:
            while self.made < 10:
                self.made += 1
                yield b"%d" % self.made
        finally:
            self.closed = True


class Client:
    """Takes what is sent, and leaves, or breaks down, at some message."""

    def __init__(self, *, leaves_at: int = 99, breaks_at: int = 99) -> None:
        self.taken: list[Message] = []
        self._leaves_at, self._breaks_at = leaves_at, breaks_at
        self._gone = asyncio.Event()

    async def receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.taken.append(message)
        if len(self.taken) >= self._breaks_at:
            raise ConnectionResetError
        if len(self.taken) >= self._leaves_at:
            self._gone.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_every_piece_and_the_end_are_sent() -> None:
    pieces, client = Pieces(), Client()
    await send_response(Response(200, [], pieces.make()), SCOPE, client.receive, client.send)
    start, *body, end = client.taken
    assert (start["type"], start["status"]) == ("http.response.start", 200)
    assert [(m["body"], m["more_body"]) for m in body] == [
        (b"%d" % number, True) for number in range(1, 11)
    ]
    assert (end["body"], end.get("more_body", False)) == (b"", False)
    assert pieces.closed


@pytest.mark.parametrize("leaves_at", [2, 5])
async def test_nothing_is_created_for_a_disconnected_client_and_open_files_are_closed(
    leaves_at: int,
) -> None:
    pieces, client = Pieces(), Client(leaves_at=leaves_at)
    body = pieces.make()  # held here, so that nothing but the sender closes it
    await send_response(Response(200, [], body), SCOPE, client.receive, client.send)
    await asyncio.sleep(0)  # where a cancellation that came too late would strike
    assert len(client.taken) == leaves_at, "an end would say that the body was whole"
    assert pieces.made <= leaves_at
    assert pieces.closed


async def test_who_leaves_while_nothing_is_to_be_sent_ends_the_wait() -> None:
    """As on a stream of notifications, which may be quiet for long."""
    client, closed = Client(leaves_at=2), asyncio.Event()

    async def make() -> AsyncIterator[bytes]:
        try:
            yield b"1"
            await asyncio.Event().wait()
        finally:
            closed.set()

    body = make()
    await send_response(Response(200, [], body), SCOPE, client.receive, client.send)
    assert [message.get("body") for message in client.taken] == [None, b"1"]
    assert closed.is_set()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling(), "what comes after the response is not cancelled"


async def test_a_stream_that_is_cancelled_by_others_is_cancelled() -> None:
    client, waiting = Client(), asyncio.Event()

    async def make() -> AsyncIterator[bytes]:
        yield b"1"
        waiting.set()
        await asyncio.Event().wait()

    body = make()
    sending = send_response(Response(200, [], body), SCOPE, client.receive, client.send)
    task = asyncio.create_task(sending)
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Held(AsyncIterator[bytes]):
    """Pieces that hold something from the beginning."""

    def __init__(self) -> None:
        self.closed = False

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True


async def test_what_was_open_is_closed_though_nothing_was_ever_sent() -> None:
    pieces, client = Held(), Client(breaks_at=1)
    with pytest.raises(ConnectionResetError):
        await send_response(Response(200, [], pieces), SCOPE, client.receive, client.send)
    assert pieces.closed


async def test_a_connection_that_breaks_closes_what_was_open_too() -> None:
    pieces, client = Pieces(), Client(breaks_at=3)
    body = pieces.make()
    with pytest.raises(ConnectionResetError):
        await send_response(Response(200, [], body), SCOPE, client.receive, client.send)
    assert (pieces.made, pieces.closed) == (2, True)


async def test_a_client_that_reads_nothing_is_treated_as_disconnected() -> None:
    class Stalled(Client):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if len(self.taken) == 3:
                await asyncio.Event().wait()

    pieces, client = Pieces(), Stalled()
    await send_response(
        Response(200, [], pieces.make()), SCOPE, client.receive, client.send, take_timeout_s=0.01
    )
    assert len(client.taken) == 3, "an end would say that the body was whole"
    assert pieces.closed


# --- Every error has a status, and reveals no more than its public message ---------------------


ABSTRACT = {PodsteadError, RequestRefused, ServerTrouble}
CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, PodsteadError) and cls not in ABSTRACT and cls is not errors.StartRefused
]
REALM = "http://localhost:3000"


def made(cls: type[PodsteadError], message: str = "A sentence") -> PodsteadError:
    if issubclass(cls, MethodNotAllowed):
        return cls(message, allow=("GET", "HEAD"))
    if issubclass(cls, RangeNotSatisfiable):
        return cls(message, size_bytes=7)
    if issubclass(cls, RateLimited):
        return cls(retry_after_s=9)
    if issubclass(cls, errors.QuotaExceeded):
        return cls(used_bytes=1, limit_bytes=2, needed_bytes=3)
    if issubclass(cls, errors.InsufficientScope):
        return cls(message, scheme="Bearer", asks_at="http://localhost/.pages/apps")
    return cls(message)


def answer(error: PodsteadError, **changes: str) -> Response:
    asked: dict[str, str | None] = {"method": "GET", "accept": None, **changes}
    return refusal(
        error,
        method=asked["method"] or "",
        accept=asked["accept"],
        challenges=AuthenticateChallenges(REALM),
    )


def header(response: Response, name: bytes) -> bytes | None:
    return dict(response.headers).get(name)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_has_a_status_by_whose_fault_it_is(cls: type[PodsteadError]) -> None:
    assert any(ancestor in STATUSES for ancestor in cls.__mro__)
    status, reason = status_of(made(cls))
    # 501, 507 and the 502 of RFC 4918 are in the fives by the specification, although the sender
    # can mend them; a full disk is 507 as well.
    theirs = issubclass(cls, RequestRefused) or cls is errors.DiskFull
    fives = (501, 502, 507) if cls is errors.ForeignDestination else (501, 507)
    assert (status < 500 or status in fives) is theirs
    assert reason


def test_no_two_errors_share_a_status() -> None:
    """But for the two kinds of room that there may be too little of, the three of what may be tried
    again, here, at the database and at another server, and of other servers that are of no use."""
    statuses = [status for status, _ in STATUSES.values()]
    statuses.remove(507)
    statuses.remove(503)
    statuses.remove(503)
    statuses.remove(502)
    assert len(set(statuses)) == len(statuses)


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_says_its_sentence_as_json_or_as_a_page(cls: type[PodsteadError]) -> None:
    """A-9, P-17."""
    error = made(cls)
    status, reason = status_of(error)
    message = INTERNAL_MESSAGE if status == 500 else str(error)
    response = answer(error)
    assert isinstance(response.body, bytes)
    told = json.loads(response.body)
    assert (told["error"], told["message"]) == (error.known_text or reason, message)
    assert header(response, b"content-type") == b"application/json"
    page = answer(error, accept="text/html")
    assert isinstance(page.body, bytes)
    assert reason.encode() in page.body
    assert header(page, b"content-length") == str(len(page.body)).encode()
    head = answer(error, method="HEAD")
    assert (head.headers, head.body) == (response.headers, b"")


def test_trouble_does_not_say_what_it_was() -> None:
    """A-186: its text is for the log."""
    for error in (errors.StorageError("/data/podstead.db is locked"), ServerTrouble("secret")):
        for accept in ("*/*", "text/html"):
            body = answer(error, accept=accept).body
            assert isinstance(body, bytes)
            assert str(error).encode() not in body


def test_a_page_about_trouble_says_once_that_nothing_was_changed() -> None:
    body = answer(errors.StorageError("secret"), accept="text/html").body
    assert isinstance(body, bytes)
    assert body.count(b"Nothing was changed") == 1
    assert b"Sign in" not in body  # the reader may be signed in


def test_some_errors_say_more_in_headers() -> None:
    """P-9, P-27, A-181."""
    assert header(answer(made(MethodNotAllowed)), b"allow") == b"GET, HEAD"
    assert header(answer(made(RangeNotSatisfiable)), b"content-range") == b"bytes */7"
    limited = answer(made(RateLimited))
    assert header(limited, b"retry-after") == b"9"
    assert isinstance(limited.body, bytes)
    assert json.loads(limited.body)["retryAfter"] == 9
    assert header(answer(Overloaded("Full")), b"retry-after") is not None


def test_a_challenge_names_an_error_only_for_a_credential_of_its_scheme() -> None:
    """A-7, A-8."""
    plain = f'Bearer realm="{REALM}", scope="openid webid"'.encode()
    assert header(answer(NotAuthenticated()), b"www-authenticate") == plain
    other = NotAuthenticated("Authentication scheme not accepted", invalid=True)
    assert header(answer(other), b"www-authenticate") == plain
    invalid = NotAuthenticated("Invalid token", invalid=True, scheme="Bearer")
    expected = plain + b', error="invalid_token", error_description="Invalid token"'
    assert header(answer(invalid), b"www-authenticate") == expected
