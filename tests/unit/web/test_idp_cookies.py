"""How the provider's cookies are read, whatever else a browser sends."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.web.asgi import HeaderFields, Message
from podstead.web.body import AsgiBody, BodyPace
from podstead.web.pages.cookies import SESSION, Cookies, Notice
from podstead.web.request import Request

SECRET = "0123456789abcdef" * 4
OTHER = "f" * 64


@pytest.mark.parametrize(
    "lines",
    [
        [f"podstead-session={SECRET}"],
        [f"a=b; podstead-session={SECRET}; c=d"],
        [f"a=b;podstead-session={SECRET};c=d"],
        ["a=b", f"podstead-session={SECRET}", "c=d"],
        [f'a="x, y"; podstead-session={SECRET}'],
        [f"podstead-session={SECRET}; podstead-session={OTHER}"],
        [f"xpodstead-session={OTHER}; podstead-session={SECRET}"],
    ],
)
def test_a_cookie_is_found_among_others(lines: list[str]) -> None:
    """Also in a field of its own (RFC 9113 section 8.2.3)."""
    assert Cookies(secure=False).secret(_request(*lines), SESSION) == SECRET


@pytest.mark.parametrize(
    "line",
    ["podstead-session=", f"podstead-session={SECRET.upper()}", f"podstead-session={SECRET}0",
     f"podstead-session={SECRET[1:]}", "podstead-session", f"__Host-podstead-session={SECRET}",
     f'podstead-session="{SECRET}"', f"podstead-browser={SECRET}"],
)  # fmt: skip
def test_invalid_session_cookies_are_ignored(line: str) -> None:
    assert Cookies(secure=False).secret(_request(line), SESSION) is None


def test_over_https_only_the_cookie_name_bound_to_the_host_is_valid() -> None:
    """A-61."""
    cookies = Cookies(secure=True)
    request = _request(f"podstead-session={OTHER}; __Host-podstead-session={SECRET}")
    assert cookies.secret(request, SESSION) == SECRET


def test_a_request_without_cookies_has_none() -> None:
    cookies, request = Cookies(secure=False), _request()
    assert cookies.secret(request, SESSION) is None
    assert cookies.notice(request) is None
    assert not cookies.any_of_account(request)


@given(st.sampled_from(["wrong-token", "signed-in"]), st.text(max_size=300))
def test_a_notice_comes_back_as_it_was_kept(name: str, typed: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in typed):
        return
    cookies = Cookies(secure=False)
    _, header = cookies.set_notice(Notice(name, typed))
    pair = header.decode().partition("; ")[0]
    assert cookies.notice(_request(pair)) == Notice(name, typed[:500])


@given(st.binary(max_size=200))
def test_no_cookie_is_a_fault(value: bytes) -> None:
    cookies = Cookies(secure=False)
    request = _request(f"podstead-notice={value.decode('latin-1')}")
    cookies.notice(request)
    assert cookies.secret(request, SESSION) is None


def _request(*lines: str) -> Request:
    fields = HeaderFields([(b"cookie", line.encode("latin-1")) for line in lines])

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    return Request(
        method="GET",
        path=ResourcePath("/idp/login"),
        fields=fields,
        body=AsgiBody(receive, fields, pace=BodyPace(1)),
        client_address="127.0.0.1",
        host="localhost",
        raw_path=b"/idp/login",
        query=b"",
    )
