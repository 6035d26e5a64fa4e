"""A bounded map that drops the least recently used entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

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
