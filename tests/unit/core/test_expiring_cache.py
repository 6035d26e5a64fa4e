"""What the bounded map holds, against a plain model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podstead.core.caches import ExpiringCache

PUTS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(1, 5), st.integers(1, 20)), max_size=40
)


@given(PUTS)
def test_the_newest_entries_that_fit_are_held(puts: list[tuple[str, int, int]]) -> None:
    """Against a list: newest first, until the weight is used up."""
    cache: ExpiringCache[str, int] = ExpiringCache(max_weight=10)
    order: list[tuple[str, int, int]] = []
    for index, (key, weight, _) in enumerate(puts):
        cache.put(key, index, expires_at_ms=100, weight=weight)
        order = [entry for entry in order if entry[0] != key] + [(key, index, weight)]
        while sum(entry[2] for entry in order) > 10:
            order.pop(0)
    held = {key: index for key, index, _ in order}
    assert {key: cache.get(key, 0) for key in "abcdef"} == {key: held.get(key) for key in "abcdef"}


@given(PUTS, st.integers(0, 25))
def test_an_entry_is_gone_from_the_moment_it_expires(
    puts: list[tuple[str, int, int]], now_ms: int
) -> None:
    """Against a dict of the latest values."""
    cache: ExpiringCache[str, int] = ExpiringCache(max_weight=1000)
    latest: dict[str, tuple[int, int]] = {}
    for index, (key, weight, expires_at_ms) in enumerate(puts):
        cache.put(key, index, expires_at_ms=expires_at_ms, weight=weight)
        latest[key] = (index, expires_at_ms)
    for key, (index, expires_at_ms) in latest.items():
        assert cache.get(key, now_ms) == (index if now_ms < expires_at_ms else None)


def test_the_least_recently_used_entry_goes_first() -> None:
    """Reading counts as use."""
    cache: ExpiringCache[str, int] = ExpiringCache(max_weight=2)
    cache.put("a", 1, expires_at_ms=9)
    cache.put("b", 2, expires_at_ms=9)
    assert cache.get("a", 0) == 1
    cache.put("c", 3, expires_at_ms=9)
    assert [cache.get(key, 0) for key in "abc"] == [1, None, 3]


def test_an_entry_too_large_for_the_cache_only_replaces_its_predecessor() -> None:
    """One huge document does not sweep the cache."""
    cache: ExpiringCache[str, int] = ExpiringCache(max_weight=10)
    cache.put("a", 1, expires_at_ms=9)
    cache.put("b", 2, expires_at_ms=9)
    cache.put("b", 3, expires_at_ms=9, weight=11)
    assert [cache.get(key, 0) for key in "ab"] == [1, None]
