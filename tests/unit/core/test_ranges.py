"""Which bytes a Range header requests (P-27, RFC 9110 section 14)."""

from __future__ import annotations

import pytest

from podstead.core.errors import RangeNotSatisfiable
from podstead.core.header_fields import (
    ByteRange,
    if_range_holds,
    select_range,
    unsatisfied_content_range,
)

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
