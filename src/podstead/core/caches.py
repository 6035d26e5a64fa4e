"""Caches in memory: of values up to a total weight, and of the results of pure functions."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sized
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Concatenate, Final, Generic, ParamSpec, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[_Value]):
    value: _Value
    weight: int


class BoundedCache(Generic[_Key, _Value]):
    """Keeps entries up to a total weight, in whatever unit the caller weighs them.

    Keys contain the version of what the value was computed from, so an entry can be dropped but
    never be out of date.
    """

    def __init__(self, max_weight: int) -> None:
        self._max_weight = max_weight
        self._weight = 0
        self._entries: OrderedDict[_Key, _Entry[_Value]] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        """The value, if it is still here."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry.value

    def values(self) -> list[_Value]:
        """All values."""
        return [entry.value for entry in self._entries.values()]

    def put(self, key: _Key, value: _Value, *, weight: int = 1) -> None:
        """Keep the value; one heavier than the whole cache is not kept."""
        self.discard(key)
        if weight > self._max_weight:
            return
        self._entries[key] = _Entry(value, weight)
        self._weight += weight
        while self._weight > self._max_weight:
            _, dropped = self._entries.popitem(last=False)
            self._weight -= dropped.weight

    def discard(self, key: _Key) -> None:
        """Remove the entry, if there is one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry.weight


class ExpiringCache(Generic[_Key, _Value]):
    """Keeps entries up to a total weight, each until it expires; the least recently used go
    first."""

    def __init__(self, max_weight: int) -> None:
        self._entries: BoundedCache[_Key, tuple[_Value, int]] = BoundedCache(max_weight)

    def get(self, key: _Key, now_ms: int) -> _Value | None:
        """The value, unless it is absent or expired."""
        entry = self._entries.get(key)
        return entry[0] if entry is not None and now_ms < entry[1] else None

    def values(self, now_ms: int) -> list[_Value]:
        """The values that have not expired."""
        return [value for value, until_ms in self._entries.values() if now_ms < until_ms]

    def put(self, key: _Key, value: _Value, *, expires_at_ms: int, weight: int = 1) -> None:
        """Keep the value until it expires; one heavier than the whole cache is not kept."""
        self._entries.put(key, (value, expires_at_ms), weight=weight)

    def discard(self, key: _Key) -> None:
        """Remove the entry, if there is one."""
        self._entries.discard(key)


# Memoization of pure functions for short keys.
#
# Clients choose the keys. If only the number of entries were bounded, a client could fill the cache
# with keys of many kilobytes each, so results for long keys are not cached.

MAX_KEY_LENGTH: Final = 512
"""In characters or bytes. Ordinary paths and headers are shorter."""

MAX_ENTRIES: Final = 2048
"""The results to cache for each function."""

_Short = TypeVar("_Short", bound=Sized)
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")


def memoize_short_keys(function: Callable[[_Short], _Result]) -> Callable[[_Short], _Result]:
    """Cache the results for arguments of at most ``MAX_KEY_LENGTH``.

    A look-up that succeeds calls no Python function. A full cache is emptied: that costs less than
    keeping track of what was used last.
    """
    return _Results(function).__getitem__


class _Results(dict[_Short, _Result]):
    """The cached results of one function, which computes those that are missing."""

    def __init__(self, function: Callable[[_Short], _Result]) -> None:
        self._function = function

    def __missing__(self, key: _Short) -> _Result:
        result = self._function(key)
        if len(key) <= MAX_KEY_LENGTH:
            if len(self) >= MAX_ENTRIES:
                self.clear()
            self[key] = result
        return result


def memoize_short_first_keys(
    function: Callable[Concatenate[_Short, _Rest], _Result],
) -> Callable[Concatenate[_Short, _Rest], _Result]:
    """Cache the most recent results of a function with several parameters, for first arguments of
    at most ``MAX_KEY_LENGTH``."""
    cached = lru_cache(maxsize=MAX_ENTRIES)(function)

    @wraps(function)
    def look_up(key: _Short, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Result:
        if len(key) > MAX_KEY_LENGTH:
            return function(key, *rest, **named)
        return cached(key, *rest, **named)  # type: ignore[arg-type]  # hashable, all of them

    return look_up
