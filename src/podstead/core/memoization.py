"""Which results of pure functions are worth keeping? Those for keys that are not long.

Whoever sends requests chooses the keys. A cache bounded in entries only would let a stranger fill
it with keys of many kilobytes each, so results for long ones are worked out every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

MAX_KEY_LENGTH = 512
"""Characters or bytes; people's paths and headers are shorter."""

_Key = TypeVar("_Key", bound=Sized)
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")


def memoize_short_keys(
    function: Callable[Concatenate[_Key, _Rest], _Result],
) -> Callable[Concatenate[_Key, _Rest], _Result]:
    """Remember the last results for first arguments of at most ``MAX_KEY_LENGTH``."""
    remembered = lru_cache(maxsize=2048)(function)

    @wraps(function)
    def look_up(key: _Key, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Result:
        if len(key) > MAX_KEY_LENGTH:
            return function(key, *rest, **named)
        return remembered(key, *rest, **named)  # type: ignore[arg-type]  # hashable, all of them

    return look_up
