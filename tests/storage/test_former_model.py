"""Former states on both engines are what a plain model says: a list of states for each path."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podstead.storage.former_states import FORMER_STATE, FormerState, former_state_of
from podstead.storage.postgresql import PostgresStore
from podstead.storage.protocol import Store
from podstead.storage.records import (
    Committed,
    KeepFormerStates,
    StagedBlob,
    StoredBody,
    Version,
    Write,
)
from podstead.storage.root import prepare_folders, prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import NOW_MS, bytes_of, path, plant, put, write
from tests.support.postgresql import empty_database

NAMES = ("/alice/c/a", "/alice/c/b")
INLINE_BYTES = 8

Act = tuple[str, str, bytes]
acts = st.tuples(
    st.sampled_from(["put", "put", "put", "delete", "move", "drop", "forget"]),
    st.sampled_from(NAMES),
    st.binary(max_size=12),
)
batches = st.lists(st.lists(acts, min_size=1, max_size=4), max_size=6)


class Present(NamedTuple):
    version: Version
    content: bytes
    begun_ms: int
    created_ms: int


class Kept(NamedTuple):
    begun_ms: int
    content: bytes
    created_ms: int
    deleted: bool


@dataclass
class Model:
    """What is stored, and what was."""

    present: dict[str, Present] = field(default_factory=dict)
    former: dict[str, list[Kept]] = field(default_factory=lambda: {name: [] for name in NAMES})
    at_ms: int = NOW_MS

    async def write(self, store: Store, act: Act, kept: Sequence[FormerState]) -> Write | None:
        """The next write, whose effect is noted; ``None`` if it is not possible."""
        what, name, content = act
        self.at_ms += 2000
        keeps = None if what == "forget" else KeepFormerStates()
        present = self.present.get(name)
        if what == "drop":
            mine = [each for each in kept if each.path == name]
            if not mine:
                return None
            self.former[name].remove(min(self.former[name]))
            return write(records=[mine[0].drop], at_ms=self.at_ms)
        if what == "put":
            body = await store.stage_body(content)
            made = write(put(name, body, creates=present is None), at_ms=self.at_ms)
            created_ms = self.at_ms if present is None else present.created_ms
            self.present[name] = Present(made.version, content, self.at_ms, created_ms)
        elif present is None:
            return None
        elif what == "move":
            other = NAMES[1 - NAMES.index(name)]
            if other in self.present:
                return None
            stored = StoredBody(path(name), present.version, len(present.content))
            made = write(put(other, stored), deletes=[name], at_ms=self.at_ms)
            new = Present(made.version, present.content, self.at_ms, self.at_ms)
            self.present[other] = new
            del self.present[name]
            for each in tuple(self.former[name]):
                if not each.deleted and each.created_ms == present.created_ms:
                    self.former[name].remove(each)
                    self.former[other].append(each._replace(created_ms=new.created_ms))
            return replace(made, keeps=keeps)
        else:
            made = write(deletes=[name], at_ms=self.at_ms)
            del self.present[name]
        if present is not None and keeps is not None:
            ended = Kept(present.begun_ms, present.content, present.created_ms, what == "delete")
            self.former[name].append(ended)
        return replace(made, keeps=keeps)


async def former(store: Store) -> list[FormerState]:
    rows = await store.fetch(
        f"SELECT {FORMER_STATE} FROM former_states ORDER BY path, modified_ms, version"
    )
    return [former_state_of(row) for row in rows]


async def compare(store: Store, drawn: Sequence[Sequence[Act]]) -> None:
    model = Model()
    await plant(store)
    for batch in drawn:
        kept = await former(store)
        writes: list[Write] = []
        for act in batch:
            if act[0] == "drop" and writes:  # the model knows what is first before the batch only
                continue
            if act[0] == "move" and any(
                isinstance(each.body, StagedBlob) for each in _puts(writes)
            ):
                continue
            made = await model.write(store, act, kept)
            if made is not None:
                writes.append(made)
        outcomes = await asyncio.gather(*map(store.commit, writes))
        assert all(isinstance(each, Committed) for each in outcomes)
        states = await former(store)
        for name in NAMES:
            mine = [each for each in states if each.path == name]
            found = []
            for each in mine:
                body = await store.open_former(each)
                assert body is not None
                found.append(await bytes_of(body))
            assert found == [each.content for each in sorted(model.former[name])]
        await store.sweep(now_ms=NOW_MS + 10**12)


def _puts(writes: Sequence[Write]) -> list:  # type: ignore[type-arg]
    return [each for every in writes for each in every.puts]


@settings(max_examples=25, deadline=None)
@given(batches)
def test_sqlite_keeps_what_the_model_says(drawn: list[list[Act]]) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "data"
            prepare_root(root)
            store = SqliteStore(root, inline_body_bytes=INLINE_BYTES)
            await store.open()
            try:
                await compare(store, drawn)
            finally:
                await store.close()

    asyncio.run(run())


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches)
def test_postgresql_keeps_what_the_model_says(database: str, drawn: list[list[Act]]) -> None:
    async def run() -> None:
        empty_database(database)
        with tempfile.TemporaryDirectory() as folder:
            layout = prepare_folders(Path(folder) / "data")
            store = PostgresStore(database, layout, inline_body_bytes=INLINE_BYTES)
            await store.open()
            try:
                await compare(store, drawn)
            finally:
                await store.close()

    asyncio.run(run())
