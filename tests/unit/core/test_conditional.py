"""Lists of entity tags: read in linear time, whatever they hold."""

from __future__ import annotations

import pytest

from podstead.core.conditional import MAX_TAGS_CHARS, parse_tags


@pytest.mark.parametrize("gap", [",  ", ", ", ",\t ", " , "])
def test_a_list_with_many_empty_members_is_read_at_once(gap: str) -> None:
    """RFC 9110 section 5.6.1.2: empty members count for nothing; they must not cost either."""
    tags = parse_tags('"a"' + gap * 1000 + '"b"')
    assert isinstance(tags, tuple)
    assert [tag.opaque for tag in tags] == ["a", "b"]
    assert parse_tags('"a"' + gap * 1000 + "x") is None  # took 3 to the power of 1000 steps


def test_a_list_may_be_so_long_and_no_longer() -> None:
    longest = '"a"'.ljust(MAX_TAGS_CHARS)
    assert parse_tags(longest) is not None
    assert parse_tags(longest + " ") is None
