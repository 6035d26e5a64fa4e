import pytest

from podstead.core.caches import (
    MAX_ENTRIES,
    MAX_KEY_LENGTH,
    memoize_short_first_keys,
    memoize_short_keys,
)


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
