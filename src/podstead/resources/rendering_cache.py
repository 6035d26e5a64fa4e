"""Which bytes were made before? A bounded memory of renderings, keyed by version.

A key names a state, so an entry can be old but never wrong, and nothing needs to be cleared when
a resource changes: the new state has a new key, and what is not asked for any more falls out.
"""

from __future__ import annotations

from collections import OrderedDict

RenderingKey = tuple[str, str, str]
"""Path, and version part and form of the entity tag: whatever bytes differ differ in these."""

_OVERHEAD_BYTES = 512
"""What an entry takes beside its content and path: objects and its place, rounded up."""


class RenderingCache:
    """Least-recently-used renderings up to a number of bytes."""

    def __init__(self, *, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._entries: OrderedDict[RenderingKey, bytes] = OrderedDict()

    @property
    def largest_bytes(self) -> int:
        """The size from which a rendering is not kept: it would push out too many others."""
        return self._capacity_bytes // 8

    def get(self, key: RenderingKey) -> bytes | None:
        content = self._entries.get(key)
        if content is not None:
            self._entries.move_to_end(key)
        return content

    def put(self, key: RenderingKey, content: bytes) -> None:
        """Remember a rendering, unless it is too large to be worth it."""
        if len(content) > self.largest_bytes or key in self._entries:
            return
        self._entries[key] = content
        self._used_bytes += _taken_bytes(key, content)
        while self._used_bytes > self._capacity_bytes:
            forgotten, dropped = self._entries.popitem(last=False)
            self._used_bytes -= _taken_bytes(forgotten, dropped)


def _taken_bytes(key: RenderingKey, content: bytes) -> int:
    """What an entry takes in memory; of most documents the content is the smaller part."""
    return len(content) + len(key[0]) + _OVERHEAD_BYTES
