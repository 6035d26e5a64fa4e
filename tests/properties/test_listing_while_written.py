"""What the pages of a container's members promise while others write (C-29).

Between any two pages anything may be committed, by this worker or another. The model is a plain
dict: which members there are, and of what size.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podstead.resources import reading
from podstead.resources.reading import pages_of_members
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import CONTAINER, STORAGE, commit, put, write

NAMES = [f"{item}{end}" for item in "abcdefgh" for end in ("", "/", "-")]
names = st.sampled_from(NAMES)
Change = tuple[str, int]
"""A member, and its size from now on; -1 for not being there."""

changes = st.lists(st.tuples(names, st.integers(-1, 3)), max_size=4)


@dataclass
class World:
    """A container, and what ever was in it while it was read."""

    store: SqliteStore
    now: dict[str, int] = field(default_factory=dict)
    throughout: set[str] = field(default_factory=set)
    ever: set[Change] = field(default_factory=set)

    async def change(self, name: str, size_bytes: int) -> None:
        if size_bytes < 0:
            if self.now.pop(name, None) is not None:
                await commit(self.store, write(deletes=[CONTAINER + name]))
                self.throughout.discard(name)
            return
        creates = name not in self.now
        await commit(self.store, write(put(CONTAINER + name, b"x" * size_bytes, creates=creates)))
        self.now[name] = size_bytes
        self.ever.add((name, size_bytes))

    def begin(self) -> None:
        self.throughout, self.ever = set(self.now), set(self.now.items())


# The fixture sets the same at each of them.
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=changes, more=st.sets(names), between=st.lists(changes, max_size=8))
def test_what_is_there_throughout_is_listed_once_and_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
    first: list[Change],
    more: set[str],
    between: list[list[Change]],
) -> None:
    monkeypatch.setattr(reading, "PAGE_MEMBERS", 3)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_read_while_writing(Path(folder), [*first, *((n, 1) for n in more)], between))


async def _read_while_writing(
    root: Path, first: Sequence[Change], between: Sequence[Sequence[Change]]
) -> None:
    prepare_root(root)
    store, other = SqliteStore(root), SqliteStore(root)
    for each in (store, other):
        await each.open()
    try:
        world = World(other)
        await commit(other, write(put(STORAGE), put(CONTAINER)))
        for name, size_bytes in first:
            await world.change(name, size_bytes)
        world.begin()
        listed: list[Change] = []
        turns = iter(between)
        async for page in pages_of_members(store, CONTAINER):
            listed += [(m.path.removeprefix(CONTAINER), m.size_bytes) for m in page]
            for name, size_bytes in next(turns, ()):
                await world.change(name, size_bytes)
        order = [name for name, _ in listed]
        assert order == sorted(set(order))
        assert world.throughout <= set(order)
        assert set(listed) <= world.ever
    finally:
        for each in (store, other):
            await each.close()
