"""What Prefer headers request (RFC 7240, LDP 1.0 section 7.2)."""

from __future__ import annotations

import pytest

from podstead.core.errors import AccessDenied, BadRequest, RangeNotSatisfiable
from podstead.core.header_fields import (
    MAX_LINK_CHARS,
    MAX_NAME_BYTES,
    MAX_PREFER_CHARS,
    NO_PREFERENCES,
    ByteRange,
    Link,
    Preferences,
    Return,
    if_range_holds,
    link_header,
    parse_links,
    parse_prefer,
    proposed_name,
    select_range,
    type_links,
    unsatisfied_content_range,
)

LDP = "http://www.w3.org/ns/ldp#"
MINIMAL = f"{LDP}PreferMinimalContainer"
EMPTY = f"{LDP}PreferEmptyContainer"
CONTAINMENT = f"{LDP}PreferContainment"
MEMBERSHIP = f"{LDP}PreferMembership"


def representation(include: tuple[str, ...] = (), omit: tuple[str, ...] = ()) -> Preferences:
    return Preferences(Return.REPRESENTATION, frozenset(include), frozenset(omit))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        # RFC 7240, sections 2 and 4: its own examples of what is known here.
        ("return=minimal", Preferences(Return.MINIMAL)),
        ("return=representation", representation()),
        ("respond-async, wait=100, handling=lenient, return=minimal", Preferences(Return.MINIMAL)),
        ("handling=strict", NO_PREFERENCES),
        ('foo; bar=""', NO_PREFERENCES),
        # LDP 1.0, section 7.2.2 and its examples.
        (f'return=representation; include="{MINIMAL}"', representation((MINIMAL,))),
        (
            f'return=representation; include="{MEMBERSHIP} {MINIMAL}"',
            representation((MEMBERSHIP, MINIMAL)),
        ),
        (
            f'return=representation; omit="{MEMBERSHIP} {CONTAINMENT}"',
            representation((), (MEMBERSHIP, CONTAINMENT)),
        ),
        (
            f'return=representation; include="{MINIMAL}"; omit="{CONTAINMENT}"',
            representation((MINIMAL,), (CONTAINMENT,)),
        ),
    ],
)
def test_headers_as_the_specifications_write_them(header: str, expected: Preferences) -> None:
    assert parse_prefer(header) == expected


@pytest.mark.parametrize(
    "header",
    [
        'RETURN=Representation;INCLUDE="%s"',
        ' return = representation ; include = "%s" ',
        'return="representation";include="%s"',
        ',, ,return=representation; include="  %s  ",',
        'return=representation;; include="%s";',
        'handling=lenient, return=representation; wait; include="%s"; include="x"',
        'foo; note="a, return=minimal, b", return=representation; include="%s"',
        'return=representation; include="x:y %s http://example.org/other"',
        '"broken", =x, a b, return=representation; include="%s"',
        'return=representation; include="%s", return=representation; include="x"',
        'foo; return=minimal, return=representation; include="%s"',
    ],
)
def test_spelling_order_and_what_is_not_known_make_no_difference(header: str) -> None:
    assert parse_prefer(header % MINIMAL) == representation((MINIMAL,))


def test_of_a_repeated_preference_the_first_applies() -> None:
    """RFC 7240 section 2: also where the second stands in a field of its own."""
    header = (
        f'return=representation; include="{MINIMAL}", return=representation; omit="{MEMBERSHIP}"'
    )
    assert parse_prefer(header) == representation((MINIMAL,))


@pytest.mark.parametrize("order", [("minimal", "representation"), ("representation", "minimal")])
def test_who_wants_both_wants_nothing_in_particular(order: tuple[str, str]) -> None:
    """RFC 7240 section 4.2."""
    assert parse_prefer(f"return={order[0]}, return={order[1]}") == NO_PREFERENCES


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "return",
        "return=",
        'return=""',
        "return=everything",
        "return representation",
        f"return=representation include={MINIMAL}",
        f"return=representation; include={MINIMAL}",
        f'return=representation; include="{MINIMAL}',
        f'return=representation; include="{MINIMAL}" x',
        f'return=representation; include="{MINIMAL}"; =x',
        ";return=representation",
        "return=representation" + " " * MAX_PREFER_CHARS,
    ],
)
def test_malformed_unknown_and_overlong_preferences_are_ignored(header: str | None) -> None:
    assert parse_prefer(header) == NO_PREFERENCES


def test_the_longest_accepted_header_is_parsed() -> None:
    header = "return=minimal"
    assert parse_prefer(header.ljust(MAX_PREFER_CHARS)) == Preferences(Return.MINIMAL)


@pytest.mark.parametrize(
    ("include", "omit", "without_members", "choose_parts"),
    [
        ((), (), False, False),
        ((MINIMAL,), (), True, True),
        ((EMPTY,), (), True, True),
        ((CONTAINMENT,), (), False, True),
        ((MINIMAL, CONTAINMENT), (), False, True),
        ((MEMBERSHIP,), (), True, True),
        ((MEMBERSHIP, CONTAINMENT), (), False, True),
        ((), (CONTAINMENT,), True, True),
        ((), (MEMBERSHIP, CONTAINMENT), True, True),
        ((), (MEMBERSHIP,), False, True),  # there is none, so it is left out
        ((), (MINIMAL,), False, False),  # it is always given
        ((), (MINIMAL, CONTAINMENT), True, True),
        ((MINIMAL,), (CONTAINMENT,), True, True),
        ((CONTAINMENT,), (MEMBERSHIP,), False, True),
        ((CONTAINMENT,), (CONTAINMENT,), False, False),
        ((MINIMAL,), (MINIMAL,), False, False),
    ],
)
def test_the_parts_of_a_basic_container(
    include: tuple[str, ...], omit: tuple[str, ...], without_members: bool, choose_parts: bool
) -> None:
    """LDP 1.0 section 7.2: it has no membership beside its containment."""
    preferences = representation(include, omit)
    assert (preferences.without_members, preferences.choose_parts) == (
        without_members,
        choose_parts,
    )


# --- Building and reading Link headers (RFC 8288, P-35, C-8) -----------------------------------


CONTAINER = "http://www.w3.org/ns/ldp#BasicContainer"


def test_all_links_stand_in_one_line_in_their_order() -> None:
    """P-35."""
    assert (
        link_header([(CONTAINER, "type"), ("https://pod.example/a/.acl", "acl")])
        == f'<{CONTAINER}>; rel="type", <https://pod.example/a/.acl>; rel="acl"'
    )


def test_no_links_are_an_empty_line() -> None:
    assert link_header([]) == ""


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("https://pod.example/a,b;c.acl", "https://pod.example/a%2Cb%3Bc.acl"),
        ("https://pod.example/a%20b?x=(y)*'!~#z", "https://pod.example/a%20b?x=(y)*'!~#z"),
        ('https://pod.example/>"\r\nX: y', "https://pod.example/%3E%22%0D%0AX:%20y"),
        ("https://[::1]:3000/caf\u00e9", "https://[::1]:3000/caf%C3%A9"),
    ],
)
def test_a_target_holds_nothing_that_ends_it_early(target: str, written: str) -> None:
    """P-35: no raw commas or semicolons inside URIs, and no way to add a header."""
    assert link_header([(target, "acl")]) == f'<{written}>; rel="acl"'


@pytest.mark.parametrize(
    "header",
    [
        f'<{CONTAINER}>; rel="type"',
        f"<{CONTAINER}>; rel=type",
        f"<{CONTAINER}>;rel=type",
        f'<{CONTAINER}> ; REL = "Type"',
        f'< {CONTAINER} >;\trel="type"',
        f'<{CONTAINER}>; rel="type describes"',
        f'<{CONTAINER}>; rel="  describes   type "',
        f'<{CONTAINER}>; title="a, <b>; rel=acl"; rel="type"',
        f'<{CONTAINER}>; title="a \\" b"; rel="ty\\pe"',
        f"<{CONTAINER}>; title; rel=type",
        f"<{CONTAINER}>; rel=type; rel=acl",
        f'<{CONTAINER}>; rel="type";',
        f'<{CONTAINER}>;; rel="type"',
        f",, <{CONTAINER}>; rel=type ,",
        f"<x>; rel=acl, <{CONTAINER}>; rel=type",
        f"<x>,<{CONTAINER}>; rel=type",
        f"<{CONTAINER}>; rel=type, garbage",
        f"<{CONTAINER}>; title*=UTF-8'de'x; rel=type",
    ],
)
def test_a_type_link_is_found_in_any_spelling(header: str) -> None:
    """C-8, RFC 8288 section 3 and appendix B."""
    assert type_links([header]) == (CONTAINER,)


@pytest.mark.parametrize(
    "header",
    [
        *("", " ", ",", "<>", "garbage", f"{CONTAINER}; rel=type", f"<{CONTAINER}; rel=type"),
        f"<{CONTAINER}>",
        f"<{CONTAINER}>; rel",
        f"<{CONTAINER}>; rel=",
        f'<{CONTAINER}>; rel="types"',
        f"<{CONTAINER}>; rev=type",
        f"<{CONTAINER}>; rel=acl; rel=type",
        f'<{CONTAINER}>; rel="type',
        f"<{CONTAINER}> rel=type",
        f"<{CONTAINER}>; rel=type x",
        f'<{CONTAINER}>; rel=type; anchor="/other"',
        f"garbage, <{CONTAINER}>; rel=type",
    ],
)
def test_other_links_are_not_type_links(header: str) -> None:
    """Other relations, other contexts (RFC 8288 section 3.2), and malformed links."""
    assert type_links([header]) == ()


def test_several_headers_and_several_values_are_read_alike() -> None:
    """RFC 9110 section 5.3."""
    assert type_links(["<a>; rel=type, <b>; rel=acl", "<c>; rel=type"]) == ("a", "c")


def test_a_malformed_header_does_not_spoil_the_others() -> None:
    """C-8."""
    assert type_links(["<a", "<c>; rel=type"]) == ("c",)


def test_relations_are_distinguished() -> None:
    """RFC 8288 section 2.1: registered types compare without case, extension types are IRIs."""
    assert parse_links(['<a>; rel="ACL http://Example/#X"; anchor="#y"']) == (
        Link("a", ("acl", "http://Example/#X"), anchored=True),
    )


def test_a_header_past_the_limit_is_not_read() -> None:
    """At the limit and one past it."""
    header = f"<{CONTAINER}>; rel=type".ljust(MAX_LINK_CHARS)
    assert type_links([header]) == (CONTAINER,)
    assert type_links([header + " "]) == ()


# --- Which bytes a Range header requests (P-27, RFC 9110 section 14) ---------------------------


SIZE = 10_000
ETAG = '"v1-bin"'
DATE = "Sat, 21 Nov 2026 04:36:00 GMT"


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=0-499", 0, 499),
        ("bytes=500-999", 500, 999),
        ("bytes=-500", 9500, 9999),
        ("bytes=9500-", 9500, 9999),
        ("bytes=0-0", 0, 0),
        ("bytes=-1", 9999, 9999),
    ],
)
def test_the_examples_of_the_specification(header: str, first: int, last: int) -> None:
    """RFC 9110 section 14.1.2, for a representation of 10,000 bytes."""
    assert select_range(header, SIZE) == ByteRange(first, last)


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=9999-", 9999, 9999),
        ("bytes=9999-10000", 9999, 9999),
        ("bytes=0-999999999999999999", 0, 9999),
        ("bytes=-10000", 0, 9999),
        ("bytes=-10001", 0, 9999),
        ("Bytes=1-2", 1, 2),
        ("BYTES= 1-2", 1, 2),
        ("bytes=1-2 ", 1, 2),
        ("bytes=,1-2,", 1, 2),
        ("bytes=0001-02", 1, 2),
    ],
)
def test_a_range_is_clipped_to_the_representation(header: str, first: int, last: int) -> None:
    """RFC 9110 sections 14.1 and 14.1.2; a list of one may have empty members (5.6.1)."""
    assert select_range(header, SIZE) == ByteRange(first, last)


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=1-2-3", "=0-1"),
        *("bytes=2-1", "bytes=1-0", "bytes 0-1", "bytes=0x1-2", "bytes=1.0-2", "bytes=+1-2"),
        *("bytes=0 - 1", "bytes=--1", "bytes=\u0661-2", "bytes=0-1\n", "bytes=0-1;x"),
        *("bytes=0-1,3-4", "bytes=0-1, 3-4", "bytes=0-,-1", "bytes=0-1,x"),
        *("items=0-1", "none", "seconds=1-2", "bytes =0-1", "bytes=" + "9" * 19 + "-"),
    ],
)
def test_anything_but_a_single_sound_byte_range_means_everything(header: str | None) -> None:
    """P-27: several ranges, unknown units and malformed headers give 200 with all bytes."""
    assert select_range(header, SIZE) is None


@pytest.mark.parametrize(
    ("header", "size"),
    [("bytes=10000-", SIZE), ("bytes=10000-10001", SIZE), ("bytes=-0", SIZE), ("bytes=0-", 0)],
)
def test_a_range_without_a_byte_is_not_satisfiable(header: str, size: int) -> None:
    """P-27: 416 with the size."""
    with pytest.raises(RangeNotSatisfiable) as caught:
        select_range(header, size)
    assert caught.value.size_bytes == size
    assert unsatisfied_content_range(size) == f"bytes */{size}"


def test_the_last_bytes_of_an_empty_representation_are_all_of_it() -> None:
    """RFC 9110 section 14.1.2: satisfiable, and only a 200 can say so."""
    assert select_range("bytes=-5", 0) is None


def test_a_range_knows_its_size_and_header() -> None:
    """RFC 9110 section 14.4, first example."""
    selected = ByteRange(42, 1233)
    assert selected.content_range(1234) == "bytes 42-1233/1234"
    assert selected.size_bytes == 1192
    assert ByteRange(0, 0).size_bytes == 1


@pytest.mark.parametrize(
    ("header", "holds"),
    [
        (None, True),
        (ETAG, True),
        (f" {ETAG}\t", True),
        ('"v2-bin"', False),
        (f"W/{ETAG}", False),
        ("v1-bin", False),
        (f'{ETAG}, "v2-bin"', False),
        ("*", False),
        ("", False),
        (DATE, True),
        ("Sat, 21 Nov 2026 04:36:01 GMT", False),
        ("Sat, 21 Nov 2026 04:35:59 GMT", False),
    ],
)
def test_a_range_applies_only_to_the_state_that_if_range_names(
    header: str | None, *, holds: bool
) -> None:
    """RFC 9110 section 13.1.5: strong comparison, and exact match of dates."""
    assert if_range_holds(header, ETAG, DATE) is holds


def test_a_weak_entity_tag_of_this_server_never_holds() -> None:
    """RFC 9110 section 13.1.5."""
    assert not if_range_holds('W/"v1"', 'W/"v1"', None)


@pytest.mark.parametrize("header", [DATE, "None", "null", ""])
def test_no_date_matches_unless_it_is_a_strong_validator(header: str) -> None:
    """RFC 9110 section 8.8.2.2: two changes in one second would be spliced together."""
    assert not if_range_holds(header, ETAG, None)


# --- Which name a Slug header proposes (C-4, C-5) ----------------------------------------------


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
