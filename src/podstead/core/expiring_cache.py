"""A bounded map whose entries expire.

Pure apart from its own state: the caller passes the time with each call.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from podstead.core.bounded_cache import BoundedCache

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


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
