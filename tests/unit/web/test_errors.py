"""Every error has a status, and reveals no more than its public message."""

from __future__ import annotations

import inspect
import json

import pytest

from podstead.core import errors
from podstead.core.errors import (
    MethodNotAllowed,
    NotAuthenticated,
    Overloaded,
    PodsteadError,
    RangeNotSatisfiable,
    RateLimited,
    RequestRefused,
    ServerTrouble,
)
from podstead.web.authentication import AuthenticateChallenges
from podstead.web.errors import INTERNAL_MESSAGE, STATUSES, refusal, status_of
from podstead.web.response import Response

ABSTRACT = {PodsteadError, RequestRefused, ServerTrouble}
CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, PodsteadError) and cls not in ABSTRACT
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
    assert (told["error"], told["message"]) == (reason, message)
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
