"""What is written as a Link header is read back, and nothing crashes the reader (P-35, C-8)."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from podstead.core.header_fields import Link, link_header, parse_links, type_links

SAFE_TARGETS = st.text("abcXYZ019-._~/:?#[]@!$&'()*+=%", min_size=1, max_size=30)
RELATIONS = st.sampled_from(
    ["type", "acl", "describedby", "http://www.w3.org/ns/solid/terms#owner"]
)


@given(st.lists(st.tuples(SAFE_TARGETS, RELATIONS), max_size=6))
def test_links_survive_writing_and_reading(links: list[tuple[str, str]]) -> None:
    assert parse_links([link_header(links)]) == tuple(
        Link(target, (relation,)) for target, relation in links
    )


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), RELATIONS), max_size=6))
def test_a_client_that_splits_on_commas_finds_every_link(links: list[tuple[str, str]]) -> None:
    """P-35: the conformance harness reads a line so."""
    header = link_header(links)
    parts = header.split(",") if links else []
    assert len(parts) == len(links)
    for part, (_, relation) in zip(parts, links, strict=True):
        assert part.strip().startswith("<")
        assert part.split(";")[1:] == [f' rel="{relation}"']
    assert header.isascii()
    assert header.isprintable()


@given(st.lists(st.text() | st.text('<>;,="\\ relatyp', max_size=60), max_size=3))
@example(['<a>;a="' * 1000])
@example(["<" * 8000])
@example(["<a>" + ";" * 8000 + '"'])
@example(["<a>; rel=" + " " * 8000 + "!"])
def test_no_header_crashes_the_reader(headers: list[str]) -> None:
    links = parse_links(headers)
    assert set(type_links(headers)) <= {link.target for link in links}


@given(st.text(), st.text())
def test_a_header_does_not_change_how_another_is_read(one: str, other: str) -> None:
    assert parse_links([one, other]) == parse_links([one]) + parse_links([other])
