"""Memoization of pure functions for short keys.

Clients choose the keys. If only the number of entries were bounded, a client could fill the cache
with keys of many kilobytes each, so results for long keys are not cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

MAX_KEY_LENGTH = 512
"""In characters or bytes. Ordinary paths and headers are shorter."""

_Key = TypeVar("_Key", bound=Sized)
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")


def memoize_short_keys(
    function: Callable[Concatenate[_Key, _Rest], _Result],
) -> Callable[Concatenate[_Key, _Rest], _Result]:
    """Cache the most recent results for first arguments of at most ``MAX_KEY_LENGTH``."""
    cached = lru_cache(maxsize=2048)(function)

    @wraps(function)
    def look_up(key: _Key, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Result:
        if len(key) > MAX_KEY_LENGTH:
            return function(key, *rest, **named)
        return cached(key, *rest, **named)  # type: ignore[arg-type]  # hashable, all of them

    return look_up
