"""The rendering cache: a bounded LRU cache of serialized representations, keyed by version.

A key identifies one state, so an entry is never wrong, and nothing is invalidated when a resource
changes: the new state has a new key, and entries that are no longer used are evicted.
"""

from __future__ import annotations

from podstead.core.bounded_cache import BoundedCache

RenderingKey = tuple[str, str, str]
"""The path, and the version part and form of the entity tag. Different bytes have different
keys."""

_OVERHEAD_BYTES = 512
"""The memory of an entry besides its content and path, rounded up."""


class RenderingCache:
    """The most recently used renderings, up to ``capacity_bytes``."""

    def __init__(self, *, capacity_bytes: int) -> None:
        self._entries: BoundedCache[RenderingKey, bytes] = BoundedCache(capacity_bytes)
        self.largest_bytes = capacity_bytes // 8
        """The size above which a rendering is not cached: it would evict too many others."""

    def get(self, key: RenderingKey) -> bytes | None:
        return self._entries.get(key)

    def put(self, key: RenderingKey, content: bytes) -> None:
        """Cache a rendering, unless it is larger than :attr:`largest_bytes`."""
        if len(content) <= self.largest_bytes:
            weight = len(content) + len(key[0]) + _OVERHEAD_BYTES
            self._entries.put(key, content, weight=weight)
