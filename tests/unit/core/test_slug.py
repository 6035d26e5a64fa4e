"""Which name a Slug header proposes (C-4, C-5)."""

from __future__ import annotations

import pytest

from podstead.core.errors import AccessDenied, BadRequest
from podstead.core.header_fields import MAX_NAME_BYTES, proposed_name


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        (b"foobar", "foobar"),
        (b"Notes 2026.ttl", "Notes%202026.ttl"),
        (b"a.tar.gz", "a.tar.gz"),
        (b"foo:bar@baz,(1)", "foo:bar@baz,(1)"),
        (b".hidden", ".hidden"),
        (b"...", "..."),
        (b"x.acl.ttl", "x.acl.ttl"),
        (b"acl", "acl"),
        (b"x.ACL", "x.ACL"),
    ],
)
def test_a_valid_name_is_taken_literally(slug: bytes, name: str) -> None:
    """C-4; the extension stays as given."""
    assert proposed_name(slug, wants_container=False) == name


def test_a_containers_name_ends_in_a_slash() -> None:
    """P-48."""
    assert proposed_name(b"notes", wants_container=True) == "notes/"
    assert proposed_name(b"notes/", wants_container=True) == "notes/"


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        (b"The Beach at S%C3%A8te", "The%20Beach%20at%20S%C3%A8te"),
        (b"caf%C3%A9", "caf%C3%A9"),
        ("caf\u00e9".encode(), "caf%C3%A9"),
        ("caf\u00e9".encode("latin-1"), "caf%C3%A9"),
        (b"caf%E9", "caf%C3%A9"),
        (b"100%", "100%25"),
        (b"a%zzb", "a%25zzb"),
        (b"%2525", "%2525"),
    ],
)
def test_a_slug_is_percent_decoded_as_utf_8(slug: bytes, name: str) -> None:
    """RFC 5023 section 9.7, whose example is the first; decoded once, leniently."""
    assert proposed_name(slug, wants_container=False) == name


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        (b"  foo\t", "foo"),
        (b"/foo/", "foo"),
        (b"%2Ffoo%2F", "foo"),
        (b" / foo / ", "foo"),
        (b"foo/", "foo"),
        (b"a/b", "a-b"),
        (b"a%2Fb", "a-b"),
        (b"a//b", "a-b"),
        (b"a\x01\x7fb", "a-b"),
        (b"a%0D%0Ab", "a-b"),
        (b"a%C2%85b", "a-b"),
        (b"../../etc/passwd", "..-..-etc-passwd"),
    ],
)
def test_what_a_name_cannot_hold_is_stripped_or_replaced(slug: bytes, name: str) -> None:
    """C-5: sanitise."""
    assert proposed_name(slug, wants_container=False) == name


@pytest.mark.parametrize(
    "slug", [None, b"", b" ", b"/", b"//", b".", b"..", b"./", b"/..", b"%2E%2E", b"%2e%2F", b" . "]
)
@pytest.mark.parametrize("wants_container", [False, True])
def test_a_slug_that_cannot_become_a_name_proposes_nothing(
    slug: bytes | None, *, wants_container: bool
) -> None:
    """C-5: the caller makes up a name."""
    assert proposed_name(slug, wants_container=wants_container) is None


@pytest.mark.parametrize(
    "slug", [b"x.acl", b".acl", b"x.meta", b".meta", b"x%2Eacl", b"x.acl/", b" x.meta ", b"a/.acl"]
)
@pytest.mark.parametrize("wants_container", [False, True])
def test_the_name_of_an_auxiliary_resource_is_refused(
    slug: bytes, *, wants_container: bool
) -> None:
    """C-5: 403; a container's would be the slash twin of an ACL."""
    with pytest.raises(AccessDenied):
        proposed_name(slug, wants_container=wants_container)


@pytest.mark.parametrize("slug", [b"a\x00b", b"a%00b", b"%00"])
def test_a_nul_is_refused(slug: bytes) -> None:
    """C-5."""
    with pytest.raises(BadRequest):
        proposed_name(slug, wants_container=False)


@pytest.mark.parametrize("character", ["a", "\u00e9", "\U0001f600"])
def test_the_length_of_a_name_is_limited_in_bytes(character: str) -> None:
    """C-5: at the limit and one past it."""
    size = len(character.encode())
    longest = character * (MAX_NAME_BYTES // size)
    assert proposed_name(longest.encode(), wants_container=False) is not None
    with pytest.raises(BadRequest):
        proposed_name((longest + character).encode(), wants_container=False)
