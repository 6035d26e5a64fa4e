"""Range headers against Python's own slices (P-27)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import RangeNotSatisfiable
from podstead.core.header_fields import if_range_holds, select_range

BODIES = st.binary(max_size=20)
NUMBERS = st.integers(0, 25)


def served(body: bytes, header: str) -> bytes:
    """The bytes that a response to the header carries."""
    selected = select_range(header, len(body))
    if selected is None:
        return body
    part = body[selected.first : selected.last + 1]
    assert len(part) == selected.size_bytes
    return part


@given(BODIES, NUMBERS, NUMBERS)
def test_a_closed_range_is_a_slice(body: bytes, first: int, last: int) -> None:
    header = f"bytes={first}-{last}"
    if last < first:
        assert served(body, header) == body
    elif first >= len(body):
        with pytest.raises(RangeNotSatisfiable):
            served(body, header)
    else:
        assert served(body, header) == body[first : last + 1]


@given(BODIES, NUMBERS)
def test_an_open_range_is_a_slice_to_the_end(body: bytes, first: int) -> None:
    if first >= len(body):
        with pytest.raises(RangeNotSatisfiable):
            served(body, f"bytes={first}-")
    else:
        assert served(body, f"bytes={first}-") == body[first:]


@given(BODIES, st.integers(1, 25))
def test_a_suffix_range_is_a_slice_from_the_end(body: bytes, length: int) -> None:
    assert served(body, f"bytes=-{length}") == body[-length:]


@given(st.text() | st.from_regex(r"bytes=[-0-9, ]{0,50}", fullmatch=True), st.integers(0, 10**12))
def test_no_header_crashes_and_every_range_lies_inside(header: str, size: int) -> None:
    try:
        selected = select_range(header, size)
    except RangeNotSatisfiable:
        selected = None
    assert selected is None or 0 <= selected.first <= selected.last < size


@given(st.text(), st.text())
def test_if_range_holds_for_exactly_the_current_validators(header: str, tag: str) -> None:
    assert if_range_holds(f'"{tag}"', f'"{tag}"', None)
    assert not if_range_holds(header, f'"{header}x"', header + "x")
