"""The bounded map behind the caches of access control."""

from __future__ import annotations

from podstead.core.caches import BoundedCache


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
