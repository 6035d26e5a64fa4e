"""How IRIs in access rules compare."""

from __future__ import annotations

import pytest

from podstead.core.identifiers import canonical_url
from podstead.wac.acl import agent_name, local_path, origin_of

BASE = "https://pods.example"


@pytest.mark.parametrize(
    "iri",
    [
        "https://pods.example/a/caf%C3%A9",
        "https://pods.example/a/caf%c3%a9",
        "https://pods.example/a/café",
        "https://pods.example/%61/caf%C3%A9",
        "HTTPS://PODS.Example/a/caf%C3%A9",
        "https://pods.example:443/a/caf%C3%A9",
    ],
)
def test_spellings_of_one_resource_compare_equal(iri: str) -> None:
    """W-11"""
    assert canonical_url(iri) == "https://pods.example/a/caf%C3%A9"
    assert local_path(iri, BASE) == "/a/caf%C3%A9"


@pytest.mark.parametrize(
    "iri",
    [
        "https://pods.example/a/",
        "https://pods.example/A",
        "https://pods.example/a/b",
        "https://pods.example:8443/a",
        "http://pods.example/a",
        "https://pods.example.evil.example/a",
        "https://pods.example/a%2F",
    ],
)
def test_other_resources_do_not(iri: str) -> None:
    """W-11: trailing slash exact, path case-sensitive, scheme and port count."""
    assert canonical_url(iri) not in (None, "https://pods.example/a")
    assert local_path(iri, BASE) != "/a"


@pytest.mark.parametrize(
    "iri",
    [
        "",
        "/a",
        "did:nostr:abc",
        "urn:x:y",
        "ftp://pods.example/a",
        "https://",
        "https:///a",
        "https://user@pods.example/a",
        "https://pods.example/a?q",
        "https://pods.example/a#f",
        "https://pods.example/a/../b",
        "https://pods.example/a//b",
        "https://pods.example/%zz",
        "https://pods.example/%FF",
        "https://pods.example/\ud800",
    ],
)
def test_what_names_no_resource_compares_with_nothing(iri: str) -> None:
    assert canonical_url(iri) is None
    assert local_path(iri, BASE) is None


def test_the_root_is_named_with_and_without_its_slash() -> None:
    assert local_path("https://pods.example", BASE) == "/"
    assert local_path("https://pods.example/", BASE) == "/"


def test_a_base_url_in_another_spelling_is_the_same_server() -> None:
    assert local_path("https://pods.example/a", "HTTPS://Pods.Example:443") == "/a"


@pytest.mark.parametrize(
    ("iri", "origin"),
    [
        ("https://app.example", "https://app.example"),
        ("https://app.example/", "https://app.example"),
        ("HTTPS://App.Example:443", "https://app.example"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://app.example/path", None),
        ("https://app.example/#x", None),
        ("https://app.example?x", None),
        ("app.example", None),
        ("null", None),
        ("", None),
    ],
)
def test_origins_compare_as_browsers_write_them(iri: str, origin: str | None) -> None:
    """W-17, RFC 6454 section 6.2"""
    assert origin_of(iri) == origin


def test_the_key_of_a_nostr_identity_compares_without_case() -> None:
    """A-150"""
    assert agent_name("did:nostr:ABCDEF") == "did:nostr:abcdef"


def test_any_other_agent_compares_as_it_is_written() -> None:
    """W-13: IRI equality"""
    for iri in ("https://Bob.example/#Me", "https://bob.example/?A", "did:web:Bob"):
        assert agent_name(iri) == iri
