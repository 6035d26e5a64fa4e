"""The rendering cache: a bounded LRU cache of serialized representations, keyed by version.

A key identifies one state, so an entry is never wrong, and nothing is invalidated when a resource
changes: the new state has a new key, and entries that are no longer used are evicted.
"""

from __future__ import annotations

from collections import OrderedDict

RenderingKey = tuple[str, str, str]
"""The path, and the version part and form of the entity tag. Different bytes have different
keys."""

_OVERHEAD_BYTES = 512
"""The memory of an entry besides its content and path, rounded up."""


class RenderingCache:
    """The most recently used renderings, up to ``capacity_bytes``."""

    def __init__(self, *, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._entries: OrderedDict[RenderingKey, bytes] = OrderedDict()

    @property
    def largest_bytes(self) -> int:
        """The size above which a rendering is not cached: it would evict too many others."""
        return self._capacity_bytes // 8

    def get(self, key: RenderingKey) -> bytes | None:
        content = self._entries.get(key)
        if content is not None:
            self._entries.move_to_end(key)
        return content

    def put(self, key: RenderingKey, content: bytes) -> None:
        """Cache a rendering, unless it is larger than :attr:`largest_bytes`."""
        if len(content) > self.largest_bytes or key in self._entries:
            return
        self._entries[key] = content
        self._used_bytes += _taken_bytes(key, content)
        while self._used_bytes > self._capacity_bytes:
            forgotten, dropped = self._entries.popitem(last=False)
            self._used_bytes -= _taken_bytes(forgotten, dropped)


def _taken_bytes(key: RenderingKey, content: bytes) -> int:
    """The memory that an entry takes; for most documents, the content is the smaller part."""
    return len(content) + len(key[0]) + _OVERHEAD_BYTES
