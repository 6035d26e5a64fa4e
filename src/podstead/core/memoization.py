"""Memoization of pure functions for short keys.

Clients choose the keys. If only the number of entries were bounded, a client could fill the cache
with keys of many kilobytes each, so results for long keys are not cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

MAX_KEY_LENGTH: Final = 512
"""In characters or bytes. Ordinary paths and headers are shorter."""

MAX_ENTRIES: Final = 2048
"""The results to cache for each function."""

_Key = TypeVar("_Key", bound=Sized)
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")


def memoize_short_keys(function: Callable[[_Key], _Result]) -> Callable[[_Key], _Result]:
    """Cache the results for arguments of at most ``MAX_KEY_LENGTH``.

    A look-up that succeeds calls no Python function. A full cache is emptied: that costs less than
    keeping track of what was used last.
    """
    return _Results(function).__getitem__


class _Results(dict[_Key, _Result]):
    """The cached results of one function, which computes those that are missing."""

    def __init__(self, function: Callable[[_Key], _Result]) -> None:
        self._function = function

    def __missing__(self, key: _Key) -> _Result:
        result = self._function(key)
        if len(key) <= MAX_KEY_LENGTH:
            if len(self) >= MAX_ENTRIES:
                self.clear()
            self[key] = result
        return result


def memoize_short_first_keys(
    function: Callable[Concatenate[_Key, _Rest], _Result],
) -> Callable[Concatenate[_Key, _Rest], _Result]:
    """Cache the most recent results of a function with several parameters, for first arguments of
    at most ``MAX_KEY_LENGTH``."""
    cached = lru_cache(maxsize=MAX_ENTRIES)(function)

    @wraps(function)
    def look_up(key: _Key, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Result:
        if len(key) > MAX_KEY_LENGTH:
            return function(key, *rest, **named)
        return cached(key, *rest, **named)  # type: ignore[arg-type]  # hashable, all of them

    return look_up
