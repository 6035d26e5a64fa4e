"""The pages for people: self-contained, usable everywhere, and escaped."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import BadRequest, NotFound
from podstead.core.identifiers import ResourcePath
from podstead.web.account.collections import format_day
from podstead.web.asgi import HeaderFields, Message
from podstead.web.body import AsgiBody, BodyPace
from podstead.web.browsers import browser_name
from podstead.web.errors import STATUSES
from podstead.web.pages.addresses import with_next
from podstead.web.pages.cookies import SESSION, Cookies, FlashMessage
from podstead.web.pages.formats import machine_time
from podstead.web.pages.rendering import error_page, form_source
from podstead.web.pages.templates import PAGE_POLICY, asset_url, load_assets
from podstead.web.request import Request

STYLE = load_assets()["base.css"].decode()
PAGES = {
    f"error {status}": error_page(status=status, reason=reason, error=NotFound()).decode()
    for status, reason in STATUSES.values()
}
VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})
LOADING = frozenset(
    {"script", "img", "iframe", "object", "embed", "video", "audio", "source", "base",
     "form", "input", "button"}
)  # fmt: skip


def page_about(message: str, status: int = 400) -> str:
    return error_page(status=status, reason="R", error=BadRequest(message)).decode()


class Outline(HTMLParser):
    """What a page is made of; knows when elements are not closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_has_what_browsers_and_readers_need(page: str) -> None:
    assert page.startswith("<!doctype html>")
    outline = Outline(page)
    assert outline.open == []
    assert outline.attributes("html") == [{"lang": "en"}]
    assert re.search(r"<title>\s*\S[^<]*</title>", page)
    meta = outline.attributes("meta")
    assert {"charset": "utf-8"} in meta
    named = {attributes["name"]: attributes["content"] for attributes in meta[1:]}
    assert named["viewport"] == "width=device-width, initial-scale=1"
    assert named["color-scheme"] == "light dark"
    assert len(outline.attributes("h1")) == len(outline.attributes("main")) == 1
    assert "prefers-color-scheme:dark" in STYLE


FONTS = ("figtree.woff2", "figtree-latin.woff2", "figtree-ext.woff2")


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_loads_its_style_alone_and_runs_nothing(page: str) -> None:
    """A-192: it fits the policy that it is sent with."""
    outline = Outline(page)
    assert not {tag for tag, _ in outline.elements} & LOADING
    for link in outline.attributes("link"):
        kind = {"stylesheet": ".css", "preload": ".woff2"}[link["rel"] or ""]
        assert link["href"] in {
            asset_url(each) for each in ("base.css", "pods.css", *FONTS) if each.endswith(kind)
        }
    for tag, attributes in outline.elements:
        assert not {"src", "style", "srcset"} & set(attributes)
        assert tag in {"a", "link"} or "href" not in attributes
        assert tag != "a" or (attributes["href"] or "")[:1] in {"/", "#"}
        assert not [name for name in attributes if name.startswith("on")]
    assert "<style" not in page
    assert re.findall(r"url\(([^)]*)\)", STYLE) == [f'"{each}"' for each in FONTS]
    assert "@import" not in STYLE
    policy = PAGE_POLICY[1].decode()
    assert policy.split("; ")[0] == "default-src 'none'"
    assert "script-src" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;<b>", "</p>"]
)
def test_values_in_a_page_are_escaped(hostile: str) -> None:
    expected = len(Outline(page_about("x")).elements)
    for page in (page_about(hostile), page_about(f"{hostile}.")):
        outline = Outline(page)
        assert len(outline.elements) == expected
        assert hostile in outline.text


def test_a_refusal_does_not_say_that_something_is_there() -> None:
    """W-60, W-64: the words are the same for what exists and for what does not."""
    for status in (401, 403):
        text = Outline(page_about("Denied", status)).text
        assert "is here" not in text
        assert "is not public" not in text


@pytest.mark.parametrize(("message", "shown"), [("No end", "No end."), ("An end.", "An end.")])
def test_a_message_ends_as_a_sentence(message: str, shown: str) -> None:
    text = Outline(page_about(message)).text
    assert shown in text
    assert f"{shown}." not in text


def test_a_long_word_does_not_make_a_page_wider_than_its_window() -> None:
    """Messages name URLs; on a telephone they ran out of the page."""
    (paragraph,) = re.findall(r"\}p\{([^}]*)\}", STYLE)
    assert "overflow-wrap:anywhere" in paragraph
    (block,) = re.findall(r"\}pre\{([^}]*)\}", STYLE)
    assert "overflow-x:auto" in block


# --- How the provider's cookies are read, whatever else a browser sends ------------------------


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
    assert cookies.flash_message(request) is None
    assert not cookies.any_of_account(request)


@given(st.sampled_from(["wrong-token", "signed-in"]), st.text(max_size=300))
def test_a_notice_comes_back_as_it_was_kept(name: str, typed: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in typed):
        return
    cookies = Cookies(secure=False)
    _, header = cookies.set_flash_message(FlashMessage(name, typed))
    pair = header.decode().partition("; ")[0]
    assert cookies.flash_message(_request(pair)) == FlashMessage(name, typed[:500])


@given(st.binary(max_size=200))
def test_no_cookie_is_a_fault(value: bytes) -> None:
    cookies = Cookies(secure=False)
    request = _request(f"podstead-notice={value.decode('latin-1')}")
    cookies.flash_message(request)
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


# --- How the account page names browsers and days ----------------------------------------------


_WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (f"Mozilla/5.0 (Windows NT 10.0; Win64) {_CHROME} Safari/537.36", "Chrome on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {_CHROME} Safari/537.36 Edg/141.0", "Edge on Windows"),
        (f"Mozilla/5.0 (Macintosh) {_WEBKIT} Version/18.5 Safari/605.1.15", "Safari on Mac"),
        (f"Mozilla/5.0 (iPhone) {_WEBKIT} CriOS/141.0 Safari/604.1", "Chrome on iPhone"),
        (f"Mozilla/5.0 (Linux; Android 15) {_CHROME} Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko Firefox/140.0", "Firefox on Linux"),
        ("Mozilla/5.0 (X11; Linux x86_64) Something/1.0", "A browser on Linux"),
        ("curl/8.7.1", "A program"),
        ("", "A program"),
    ],
)
def test_a_browser_is_named_as_people_know_it(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name


def test_days_are_written_for_people_and_for_programs() -> None:
    assert format_day(1_746_230_400) == "3 May 2025"
    assert machine_time(1_746_230_400) == "2025-05-03T00:00:00Z"


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://app.example/callback?x=1", "https://app.example"),
        ("https://app.example:8443/", "https://app.example:8443"),
        ("http://[::1]:3000/", "http:"),
        ("https://a;sandbox/", "https:"),
        ("https://a'b/", "https:"),
        ("com.example.app:/callback", "com.example.app:"),
    ],
)
def test_a_policy_names_where_a_form_may_lead(url: str, source: str) -> None:
    """A-45: nothing in an application's address writes into the policy."""
    assert form_source(url) == source


def test_the_next_page_is_added_to_an_address_with_or_without_a_query() -> None:
    afterwards = "/.pages/files/a b?x=1&y=2"
    for address in ("/.pages/sign-in", "/.pages/sign-in?ways=all"):
        assert with_next(address, None) == address
        query = parse_qs(urlsplit(with_next(address, afterwards)).query)
        assert query.pop("next") == [afterwards]
        assert query == parse_qs(urlsplit(address).query)
