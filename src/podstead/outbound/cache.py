"""What was learned lately and still holds? A bounded map whose entries expire.

Pure apart from its own state: the time comes in with each call.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Value]):
    value: Value
    weight: int
    expires_at_ms: int


class ExpiringCache(Generic[Key, Value]):
    """Holds entries up to a total weight; the least recently used go first."""

    def __init__(self, *, max_weight: int) -> None:
        self._max_weight = max_weight
        self._weight = 0
        self._entries: OrderedDict[Key, _Entry[Value]] = OrderedDict()

    def get(self, key: Key, now_ms: int) -> Value | None:
        """The value, unless it is absent or expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires_at_ms <= now_ms:
            self.discard(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    def put(self, key: Key, value: Value, *, expires_at_ms: int, weight: int = 1) -> None:
        """Keep the value until it expires; one heavier than the whole cache is not kept."""
        self.discard(key)
        if weight > self._max_weight:
            return
        self._entries[key] = _Entry(value, weight, expires_at_ms)
        self._weight += weight
        while self._weight > self._max_weight:
            self.discard(next(iter(self._entries)))

    def discard(self, key: Key) -> None:
        """Forget the key, if it is known."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry.weight
