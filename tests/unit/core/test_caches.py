"""The bounded map behind the caches of access control."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.caches import (
    MAX_ENTRIES,
    MAX_KEY_LENGTH,
    BoundedCache,
    ExpiringCache,
    memoize_short_first_keys,
    memoize_short_keys,
)


def test_what_was_put_is_found_until_the_weight_is_used_up() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, 2, None)


def test_the_least_recently_used_is_forgotten_first() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_a_heavy_entry_takes_the_place_of_several() -> None:
    cache: BoundedCache[str, int] = BoundedCache(3)
    for key in "abc":
        cache.put(key, 0)
    cache.put("d", 1, weight=2)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), cache.get("d")) == (None, None, 0, 1)


def test_an_entry_heavier_than_the_whole_is_not_kept_and_replaces_nothing_else() -> None:
    cache: BoundedCache[str, int] = BoundedCache(3)
    cache.put("a", 1)
    cache.put("b", 2, weight=4)
    assert (cache.get("a"), cache.get("b")) == (1, None)


def test_replacing_an_entry_frees_its_weight() -> None:
    cache: BoundedCache[str, int] = BoundedCache(3)
    cache.put("a", 1, weight=3)
    cache.put("a", 2, weight=1)
    cache.put("b", 3, weight=2)
    assert (cache.get("a"), cache.get("b")) == (2, 3)


def test_an_entry_that_became_too_heavy_is_forgotten() -> None:
    cache: BoundedCache[str, int] = BoundedCache(3)
    cache.put("a", 1)
    cache.put("a", 2, weight=4)
    assert cache.get("a") is None


def test_falsy_values_are_values() -> None:
    cache: BoundedCache[str, frozenset[int]] = BoundedCache(1)
    cache.put("a", frozenset())
    assert cache.get("a") == frozenset()


# --- What the bounded map holds, against a plain model -----------------------------------------


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


# --- memoization -------------------------------------------------------------------------------


def test_a_result_is_computed_once() -> None:
    asked: list[str] = []

    @memoize_short_keys
    def length(key: str) -> int:
        asked.append(key)
        return len(key)

    assert [length("ab"), length("ab"), length("c")] == [2, 2, 1]
    assert asked == ["ab", "c"]


def test_results_for_long_keys_are_not_kept() -> None:
    asked: list[str] = []

    @memoize_short_keys
    def length(key: str) -> int:
        asked.append(key)
        return len(key)

    longest = "x" * MAX_KEY_LENGTH
    for key in (longest, longest, longest + "x", longest + "x"):
        assert length(key) == len(key)
    assert asked == [longest, longest + "x", longest + "x"]


def test_strangers_cannot_fill_the_memory_with_keys_of_their_choice() -> None:
    class Result:
        alive = 0

        def __init__(self) -> None:
            Result.alive += 1

        def __del__(self) -> None:
            Result.alive -= 1

    @memoize_short_keys
    def result(_: str) -> Result:
        return Result()

    most = 0
    for number in range(3 * MAX_ENTRIES + 1):
        result(str(number))
        most = max(most, Result.alive)
    assert most <= MAX_ENTRIES + 1


def test_a_refusal_is_not_kept() -> None:
    asked: list[str] = []

    @memoize_short_keys
    def refuse(key: str) -> str:
        asked.append(key)
        raise ValueError(key)

    for _ in range(2):
        with pytest.raises(ValueError, match="ab"):
            refuse("ab")
    assert asked == ["ab", "ab"]


def test_further_parameters_belong_to_the_key() -> None:
    asked: list[str] = []

    @memoize_short_first_keys
    def joined(key: str, other: str = "", *, more: bool = False) -> str:
        asked.append(key)
        return f"{key}{other}{more}"

    assert joined("a", "b") == joined("a", "b") == "abFalse"
    assert joined("a", "c", more=True) == "acTrue"
    long = "x" * (MAX_KEY_LENGTH + 1)
    assert joined(long) == joined(long) == long + "False"
    assert asked == ["a", "a", long, long]
