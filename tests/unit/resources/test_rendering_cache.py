"""Converted documents are cached within the memory limit."""

from __future__ import annotations

import tracemalloc

import pytest

from podstead.resources.reading import RenderingCache, RenderingKey

CAPACITY_BYTES = 1 << 18


def key(number: int, version: str = "v", media_type: str = "text/turtle") -> RenderingKey:
    return f"/alice/private/document-{number}.ttl", version, media_type


def test_a_rendering_is_that_of_its_path_version_and_type() -> None:
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    kept = key(1)
    renderings.put(kept, b"content")
    assert renderings.get(kept) == b"content"
    for other in (key(2), key(1, "w"), key(1, "v", "application/ld+json")):
        assert renderings.get(other) is None


@pytest.mark.parametrize("size_bytes", [0, 12, 500, CAPACITY_BYTES // 8])
def test_the_memory_taken_stays_within_what_it_may_be(size_bytes: int) -> None:
    """Also of documents that are empty, of which there may be any number."""
    tracemalloc.start()
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    for number in range(5000):
        renderings.put(key(number), bytes(bytearray(size_bytes)))
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken_bytes < CAPACITY_BYTES * 1.2
    assert renderings.get(key(4999)) is not None
    assert renderings.get(key(0)) is None


def test_a_new_version_takes_the_place_of_the_old_one() -> None:
    """Whoever lists a container in which much is written evicts nobody else's renderings."""
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    renderings.put(key(0), b"of another resource")
    for version in range(100):
        renderings.put(key(1, f"v{version}"), bytes(renderings.largest_bytes))
    assert renderings.get(key(1, "v98")) is None
    assert renderings.get(key(1, "v99")) is not None
    assert renderings.get(key(0)) is not None


def test_recently_used_entries_stay() -> None:
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    renderings.put(key(0), b"often asked for")
    for number in range(1, 5000):
        renderings.put(key(number), b"x" * 100)
        assert renderings.get(key(0)) == b"often asked for"


def test_of_what_would_push_out_too_many_only_the_last_is_kept() -> None:
    """So that whoever asks for it again at once does not have it made again."""
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    renderings.put(key(1), b"x" * renderings.largest_bytes)
    for number in (2, 3):
        renderings.put(key(number), b"x" * (CAPACITY_BYTES + 1))
        assert renderings.get(key(number)) is not None
        assert renderings.get(key(number, "w")) is None
    assert renderings.get(key(1)) is not None
    assert renderings.get(key(2)) is None


def test_without_capacity_nothing_is_kept() -> None:
    renderings = RenderingCache(capacity_bytes=0)
    for content in (b"", b"x"):
        renderings.put(key(1), content)
        assert renderings.get(key(1)) is None
