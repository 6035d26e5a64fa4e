"""What an event must say about a request: one thing wrong in a valid one (A-142 to A-146)."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.features.nostr.events import (
    EventScope,
    InvalidEvent,
    SignedRequest,
    VerifiedEvent,
    check_event,
    read_event,
    read_event_url,
)
from tests.support.nostr import Change, NostrKey, packed, set_to, tag_set_to, with_tag, without_tag

KEY = NostrKey.of(5)
NOW_S = 1_800_000_000
URL = "https://pod.example/alice/a?b=c"
NOTHING = hashlib.sha256(b"").hexdigest()
SOME = hashlib.sha256(b"some").hexdigest()
OTHER_METHOD, OTHER_URL = "for another method", "for another URL"


def check(
    *changes: Change,
    method: str = "GET",
    url: str = URL,
    content: bool = False,
    reach: EventScope = EventScope.EXACT,
    require: bool = False,
    signed: str = URL,
) -> VerifiedEvent:
    """What a GET is told, or another request, that an event is about."""
    event = read_event(packed(KEY.event("GET", signed, NOW_S, *changes)))
    request = SignedRequest(method, url.encode(), has_content=content)
    return check_event(event, request, now_s=NOW_S, scope=reach, require_payload=require)


def refused(phrase: str, *changes: Change, **more: object) -> None:
    with pytest.raises(InvalidEvent, match=phrase):
        check(*changes, **more)  # type: ignore[arg-type]  # as of `check`


def test_an_event_for_this_request_and_this_minute_is_good() -> None:
    assert check() == VerifiedEvent(None, NOW_S + 120)


@pytest.mark.parametrize("kind", [1, 22242, 27234, 27236])
def test_events_of_other_kinds_are_refused(kind: int) -> None:
    """A-151: NIP-42 among them."""
    refused("wrong kind", set_to("kind", kind))


@pytest.mark.parametrize("offset_s", [-61, 61, -(10**30), 10**30])
def test_an_event_of_another_time_is_refused(offset_s: int) -> None:
    """A-143."""
    refused("too old or from the future", set_to("created_at", NOW_S + offset_s))


@pytest.mark.parametrize("offset_s", [-60, 60])
def test_a_minute_of_difference_is_taken(offset_s: int) -> None:
    """A-143, A-147: and remembered for as long as it would be."""
    proven = check(set_to("created_at", NOW_S + offset_s))
    assert proven.remembered_until_s == NOW_S + offset_s + 120


@pytest.mark.parametrize("name", ["u", "method"])
def test_exactly_one_tag_says_the_url_and_one_the_method(name: str) -> None:
    """A-142."""
    refused(f"exactly one {name} tag", without_tag(name))
    refused(f"exactly one {name} tag", with_tag(name, "GET"))
    refused(f"exactly one {name} tag", tag_set_to(name))


@pytest.mark.parametrize("method", ["PUT", "*", "", "GE", "GET ", "HEAD"])
def test_another_method_is_refused(method: str) -> None:
    refused(OTHER_METHOD, tag_set_to("method", method))


@pytest.mark.parametrize("method", ["get", "Get"])
def test_a_method_in_lower_case_will_do(method: str) -> None:
    """A-144."""
    check(tag_set_to("method", method))


@pytest.mark.parametrize(
    "signed",
    [
        "https://pod.example/alice/a",
        "https://pod.example/alice/a?b=c&d",
        "https://pod.example/alice/a?b=C",
        "https://pod.example/alice/a/?b=c",
        "https://pod.example/alice/?b=c",
        "https://pod.example/alice/",
        "https://pod.example/",
        "https://pod.example",
        "https://pod.example/Alice/a?b=c",
        "https://pod.example/alice//a?b=c",
        "https://pod.example/alice/./a?b=c",
        "https://pod.example/alice/%61?b=c",
        "http://pod.example/alice/a?b=c",
        "https://pod.example:8443/alice/a?b=c",
        "https://pod.example:80/alice/a?b=c",
        "https://pod.example.evil/alice/a?b=c",
        "https://evil.example/alice/a?b=c",
        "https://user@pod.example/alice/a?b=c",
        "https://pod.example\\@evil.example/alice/a?b=c",
        "//pod.example/alice/a?b=c",
        "/alice/a?b=c",
        " https://pod.example/alice/a?b=c",
        "ftp://pod.example/alice/a?b=c",
        "",
    ],
)
def test_another_url_is_refused(signed: str) -> None:
    refused(OTHER_URL, signed=signed)


@pytest.mark.parametrize(
    ("signed", "url"),
    [
        (URL + "#part", URL),
        ("HTTPS://POD.Example/alice/a?b=c", URL),
        ("https://pod.example:443/alice/a?b=c", URL),
        ("https://pod.example", "https://pod.example/"),
        ("https://pod.example?a", "https://pod.example/?a"),
        ("https://pod.example/a?", "https://pod.example/a"),
        ("https://pod.example/a b/é", "https://pod.example/a%20b/%C3%A9"),
        ("https://pod.example/%c3%a9", "https://pod.example/%C3%A9"),
        ("https://pod.example/?q=a b'é", "https://pod.example/?q=a%20b%27%C3%A9"),
        ("http://localhost:3000/a", "http://LOCALHOST:3000/a"),
        ("http://[::1]:3000/a", "http://[::1]:3000/a"),
    ],
)
def test_other_spellings_of_the_url_are_taken(signed: str, url: str) -> None:
    """A-144."""
    check(signed=signed, url=url)


@given(
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
def test_two_urls_compare_if_they_are_one_and_stay_as_they_are_written(
    one: str, other: str
) -> None:
    """Writing a URL in the spelling that compares changes nothing twice, and joins nothing."""
    first = read_event_url(f"https://pod.example/{one}".encode())
    assert first is not None
    again = read_event_url(first.origin + first.path + (b"?" + first.query if first.query else b""))
    assert again == first
    second = read_event_url(f"https://pod.example/{other}".encode())
    if "%" not in one + other and "?" not in one + other and "#" not in one + other:
        assert (first == second) == (one == other)


# --- content -----------------------------------------------------------------------------------


def test_content_is_to_have_the_hash_that_the_event_says() -> None:
    """A-145: in upper case as well."""
    for digest in (SOME, SOME.upper()):
        proven = check(with_tag("payload", digest), content=True)
        assert proven.content_digest == bytes.fromhex(SOME)


def test_content_without_a_hash_is_accepted_unless_the_hash_is_required() -> None:
    """A-145."""
    assert check(content=True).content_digest is None
    refused("has no payload tag", content=True, require=True)
    assert check(content=False, require=True).content_digest is None
    assert check(with_tag("payload", SOME), content=True, require=True).content_digest is not None


def test_the_hash_of_a_request_without_content_is_that_of_nothing() -> None:
    """A-145."""
    assert check(with_tag("payload", NOTHING)).content_digest is None
    refused("for different content", with_tag("payload", SOME))


@pytest.mark.parametrize("values", [(), ("",), ("0" * 63,), ("0" * 65,), ("g" * 64,), (" " * 64,)])
def test_a_payload_tag_holds_a_hash(values: tuple[str, ...]) -> None:
    refused("one payload tag", with_tag("payload", *values), content=True)


def test_two_payload_tags_are_refused() -> None:
    """A-142."""
    refused("one payload tag", *[with_tag("payload", SOME)] * 2, content=True)


# --- the form of a password --------------------------------------------------------------------

ANY_METHOD = tag_set_to("method", "*")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "signed",
    [
        "https://pod.example",
        "https://pod.example/",
        "https://pod.example/alice",
        "https://pod.example/alice/",
        "https://pod.example/alice/a",
    ],
)
def test_a_helpers_event_reads_below_its_url(method: str, signed: str) -> None:
    """A-146."""
    check(ANY_METHOD, signed=signed, method=method, reach=EventScope.SAFE)


@pytest.mark.parametrize(
    "signed",
    [
        "https://pod.example/al",
        "https://pod.example/alice/a/",
        "https://pod.example/alice/a/b",
        "https://pod.example/bob",
        "https://pod.example/alice?x",
        "http://pod.example/",
        "https://pod.example.evil/",
        "https://pod.example:444/",
    ],
)
def test_a_helpers_event_ends_at_its_url(signed: str) -> None:
    """A-146: by whole segments, on its origin."""
    refused(OTHER_URL, ANY_METHOD, signed=signed, reach=EventScope.SAFE)


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE"])
def test_a_helpers_event_changes_nothing(method: str) -> None:
    """A-146."""
    refused(OTHER_METHOD, ANY_METHOD, method=method, reach=EventScope.SAFE)
    below = "https://pod.example/alice/"
    named = tag_set_to("method", method)
    refused(OTHER_URL, named, signed=below, method=method, reach=EventScope.SAFE)
    check(named, method=method, reach=EventScope.SAFE)
    check(ANY_METHOD, signed=below, method=method, reach=EventScope.ANY)


def test_a_helpers_event_of_another_method_is_refused() -> None:
    refused(OTHER_METHOD, tag_set_to("method", "HEAD"), reach=EventScope.SAFE)
    refused(OTHER_METHOD, tag_set_to("method", "PUT"), reach=EventScope.ANY)
