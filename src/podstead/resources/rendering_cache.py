"""A bounded LRU cache of serialized representations.

An entry holds the version that it was made from, so it is never wrong, and nothing is invalidated
when a resource changes: the rendering of the new state replaces the old one. Otherwise obsolete
listings of a container with many writes would fill the cache.
"""

from __future__ import annotations

from podstead.core.caches import BoundedCache

RenderingKey = tuple[str, str, str]
"""The path, and the version part and form of the entity tag. Different bytes have different
keys."""

_OVERHEAD_BYTES = 512
"""The memory of an entry besides its content and path, rounded up."""


class RenderingCache:
    """The most recently used renderings, up to ``capacity_bytes``: the newest version of each form
    of a resource."""

    def __init__(self, *, capacity_bytes: int) -> None:
        self._entries: BoundedCache[tuple[str, str], tuple[str, bytes]]
        self._entries = BoundedCache(capacity_bytes)
        self.largest_bytes = capacity_bytes // 8
        """The size above which a rendering is not cached: it would evict too many others."""
        self._last_large: tuple[RenderingKey, bytes] | None = None

    def get(self, key: RenderingKey) -> bytes | None:
        """The rendering, if it is still here."""
        last = self._last_large
        if last is not None and last[0] == key:
            return last[1]
        path, version, form = key
        cached = self._entries.get((path, form))
        return None if cached is None or cached[0] != version else cached[1]

    def put(self, key: RenderingKey, content: bytes) -> None:
        """Cache a rendering in place of that of another version. Of those larger than
        :attr:`largest_bytes`, the last is kept, so that a repeated request need not render it
        again."""
        path, version, form = key
        if len(content) <= self.largest_bytes:
            weight = len(content) + len(path) + _OVERHEAD_BYTES
            self._entries.put((path, form), (version, content), weight=weight)
        elif self.largest_bytes:
            self._last_large = key, content
