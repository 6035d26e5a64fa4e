"""Building and reading Link headers (RFC 8288, P-35, C-8)."""

from __future__ import annotations

import pytest

from podstead.core.header_fields import MAX_LINK_CHARS, Link, link_header, parse_links, type_links

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
