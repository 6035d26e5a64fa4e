"""Is a name among millions of others? Without holding them in memory, if both come in order."""

from __future__ import annotations

from collections.abc import Iterator


class SortedNames:
    """Names in ascending order, of which each is looked at once."""

    def __init__(self, names: Iterator[str]) -> None:
        self._names = names
        self._next = next(names, None)

    def has(self, name: str) -> bool:
        """Whether it is there. A name that is smaller than one asked for before is not found."""
        while self._next is not None and self._next < name:
            self._next = next(self._names, None)
        return self._next == name
