"""The rows that a reader keeps across commits are those of the database, whoever writes.

The oracle is the database itself, asked by a connection that keeps nothing.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.records import (
    Committed,
    Metadata,
    PodRecord,
    PodRemoval,
    TokenRecord,
    TokenRevocation,
)
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SharedChanges, SqliteStore
from podstead.storage.sqlite.connection import open_reader
from podstead.storage.sqlite.reads import ReadConnection
from podstead.storage.sqlite.row_changes import (
    MAX_UNREAD,
    SLOT_BYTES,
    SLOTS,
    RowChanges,
    new_change_queue,
    read_row_count,
)
from podstead.storage.sqlite.transaction import WriteConnection
from tests.storage.engine_suite.engine import (
    NOW_MS,
    commit,
    new_version,
    path,
    plant,
    put,
    write,
)

OWNER = "http://localhost/alice/#me"
DOCUMENTS = [path(f"/alice/c/{name}") for name in ("a", "b", "a.acl")]
PATHS = [path("/alice/"), path("/alice/c/"), *DOCUMENTS]
TOKENS = ["one", "two"]


@asynccontextmanager
async def stores_of(root: Path, count: int) -> AsyncIterator[list[SqliteStore]]:
    shared = SharedChanges()
    stores = [SqliteStore(root, shared=shared) for _ in range(count)]
    for store in stores:
        await store.open()
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


class Another:
    """Another program that writes to the database, and looks at it."""

    def __init__(self, root: Path) -> None:
        self._connection = apsw.Connection(str(RootLayout(root).database))

    def run(self, statement: str, *values: str) -> list[tuple[apsw.SQLiteValue, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        self._connection.close()

    def metadata(self, target: ResourcePath) -> tuple[object, ...] | None:
        rows = self.run(
            "SELECT path, kind, version, content_type, size_bytes, modified_ms, created_ms, blob,"
            " members_version, members_modified_ms FROM resources WHERE path = ?",
            target,
        )
        return rows[0] if rows else None

    def token(self, token_id: str) -> tuple[object, ...] | None:
        rows = self.run("SELECT web_id, revoked_s FROM tokens WHERE token_id = ?", token_id)
        return rows[0] if rows else None

    def pod_owner(self, name: str) -> object:
        rows = self.run("SELECT owner FROM pods WHERE folded_name = ?", name)
        return rows[0][0] if rows else None


def columns(metadata: Metadata | None) -> tuple[object, ...] | None:
    if metadata is None:
        return None
    return (
        metadata.path,
        metadata.kind.value,
        metadata.version,
        metadata.content_type,
        metadata.size_bytes,
        metadata.modified_ms,
        metadata.created_ms,
        metadata.blob,
        metadata.members_version,
        metadata.members_modified_ms,
    )


async def look(store: SqliteStore, database: Another) -> None:
    """Everything that the store may keep is what is in the database."""
    await asyncio.sleep(0)  # a read may be as old as its callback, which has written as another
    snapshot = await store.read_metadata(PATHS)
    for target in PATHS:
        assert columns(snapshot[target]) == database.metadata(target)
    for token_id in TOKENS:
        token = await store.read_token(token_id)
        said = None if token is None else (token.web_id, token.revoked_s)
        assert said == database.token(token_id)
    pod = await store.read_pod("alice")
    assert (pod and pod.owner) == database.pod_owner("alice")


async def put_some(store: SqliteStore, database: Another, targets: Sequence[ResourcePath]) -> None:
    """Write documents at the same time, as far as what is there allows it."""
    there = {target: database.metadata(target) is not None for target in targets}
    await asyncio.gather(
        *(store.commit(write(put(target, creates=not there[target]))) for target in targets)
    )


async def take_step(step: Step, store: SqliteStore, database: Another) -> None:
    what, number = step
    target, token = DOCUMENTS[number % 3], TOKENS[number % 2]
    if what in ("put", "put all"):
        await put_some(store, database, [target] if what == "put" else DOCUMENTS)
    elif what == "delete":
        await store.commit(write(deletes=[target]))
    elif what == "issue":
        if database.token(token) is None:  # an identifier is given once
            await commit(store, write(records=[TokenRecord(token, "alice", OWNER, 1, None)]))
    elif what == "revoke":
        await commit(store, write(records=[TokenRevocation(token, 2 + number)]))
    elif what == "pod":
        await store.commit(write(records=[PodRecord("alice", PATHS[0], OWNER, NOW_MS)]))
    elif what == "remove":
        await store.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
    elif what == "sweep":
        await store.sweep(now_ms=NOW_MS + number)
    else:
        database.run(OF_ANOTHER[what])


Step = tuple[str, int]
OF_ANOTHER = {
    "another changes": "UPDATE resources SET version = version || '!'",
    "another deletes": "DELETE FROM resources WHERE path = '/alice/c/a.acl'",
    "another forgets a token": "DELETE FROM tokens WHERE token_id = 'one'",
    "another gives a pod away": "UPDATE pods SET owner = owner || '!'",
}
OF_STORES = ["put", "put all", "delete", "issue", "revoke", "pod", "remove", "sweep"]
STEPS = st.tuples(st.sampled_from([*OF_STORES, *OF_ANOTHER]), st.integers(0, 5))
LOOKERS = st.sets(st.integers(0, 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 1), LOOKERS), max_size=25))
def test_what_is_kept_is_what_is_stored(steps: list[tuple[Step, int, set[int]]]) -> None:
    """Two workers and another program write in any order; readers look now and then."""

    async def run(root: Path) -> None:
        async with stores_of(root, 2) as stores:
            await plant(stores[0])
            database = Another(root)
            for step, writer, lookers in steps:
                await take_step(step, stores[writer], database)
                for looker in lookers:
                    await look(stores[looker], database)
            for store in stores:
                await look(store, database)
            database.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(prepare_root(Path(folder) / "data").root))


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[list[SqliteStore]]:
    async with stores_of(prepare_root(tmp_path / "data").root, 2) as stores:
        await plant(stores[0])
        yield stores


@pytest.fixture
def database(tmp_path: Path) -> Path:
    root = prepare_root(tmp_path / "data").root
    return RootLayout(root).database


def reader_of(store: SqliteStore) -> ReadConnection:
    assert store._opened is not None
    return store._opened.reader


async def test_rows_stay_kept_across_the_commits_of_ones_own(stores: list[SqliteStore]) -> None:
    store = stores[0]
    before = await store.read_metadata(PATHS)
    version = await commit(store, write(put("/alice/c/a")))
    after = await store.read_metadata([path("/alice/c/a")])
    assert after[path("/alice/c/a")] is not None
    kept = reader_of(store)._metadata
    assert set(kept) == set(PATHS)
    assert kept[path("/alice/")] is not before[path("/alice/")]
    assert kept[path("/alice/c/b")] is None
    changed = kept[path("/alice/c/a")]
    assert changed is not None
    assert changed.version == version


async def test_rows_stay_kept_across_the_commits_of_another_worker(
    stores: list[SqliteStore],
) -> None:
    """In whatever order those of both came."""
    await stores[0].read_metadata(PATHS)
    registries = stores[0].registries_version()
    versions = [
        await commit(stores[number % 2], write(put(target)))
        for number, target in enumerate(DOCUMENTS)
    ]
    await stores[0].read_metadata([path("/alice/c/a")])
    kept = reader_of(stores[0])._metadata
    assert set(kept) == set(PATHS)
    assert [metadata and metadata.version for metadata in map(kept.get, DOCUMENTS)] == versions
    assert stores[0].registries_version() == registries


async def test_rows_are_forgotten_after_a_commit_of_another_program(
    stores: list[SqliteStore], tmp_path: Path
) -> None:
    await stores[0].read_metadata(PATHS)
    await commit(stores[0], write(put("/alice/c/a")))
    other = SqliteStore(tmp_path / "data")
    await other.open()
    await commit(other, write(put("/alice/c/b")))
    await other.close()
    await stores[0].read_metadata([path("/alice/c/a")])
    assert set(reader_of(stores[0])._metadata) == {path("/alice/c/a")}


async def test_rows_are_forgotten_when_too_much_has_happened(stores: list[SqliteStore]) -> None:
    """More batches than the workers remember, or one that is too large to be told."""
    await stores[0].read_metadata(PATHS)
    for number in range(SLOTS + 1):
        await commit(stores[1], write(put("/alice/c/a", creates=number == 0)))
    await stores[0].read_metadata([path("/alice/c/a")])
    assert set(reader_of(stores[0])._metadata) == {path("/alice/c/a")}
    many = [put(f"/alice/c/{'x' * 200}-{number}") for number in range(SLOT_BYTES // 200)]
    await commit(stores[1], write(*many))
    await stores[0].read_metadata([path("/alice/c/b")])
    assert set(reader_of(stores[0])._metadata) == {path("/alice/c/b")}


def test_changes_that_are_being_written_are_not_read() -> None:
    shared = SharedChanges()
    changes = RowChanges(7, 9, {path("/alice/"): None}, others=True)
    assert shared.get(7) is None
    shared.put(changes)
    assert shared.get(7) == changes
    assert shared.get(7 + SLOTS) is None
    assert shared.get(-1) is None
    place = 7 * SLOT_BYTES + 20
    shared._memory[place] ^= 1
    assert shared.get(7) is None


def test_changes_whose_slot_two_workers_wrote_at_once_are_not_read() -> None:
    """The first bytes are of the one, the rest of the other."""
    shared, other = SharedChanges(), SharedChanges()
    first, later = 7, 7 + SLOTS
    shared.put(RowChanges(first, 9, {path("/alice/"): None}, others=True))
    other.put(RowChanges(later, later + 2, {path("/alice/c/"): None}, others=False))
    place = 7 * SLOT_BYTES
    whole = shared._memory[place : place + SLOT_BYTES]
    for count in range(1, 64):
        shared._memory[place : place + SLOT_BYTES] = whole
        shared._memory[place : place + count] = other._memory[place : place + count]
        for before in (first, later):
            assert shared.get(before) in (None, other.get(before))


async def test_batches_that_no_reader_comes_for_do_not_pile_up(stores: list[SqliteStore]) -> None:
    store = stores[0]
    await store.read_metadata(PATHS)
    for number in range(2 * MAX_UNREAD):
        await commit(store, write(put("/alice/c/a", creates=number == 0)))
    assert len(reader_of(store)._change_queue) == MAX_UNREAD
    metadata = (await store.read_metadata([path("/alice/c/a")]))[path("/alice/c/a")]
    assert metadata is not None


async def test_rows_are_right_after_a_batch_of_more_than_writes(stores: list[SqliteStore]) -> None:
    store = stores[0]
    await commit(store, write(records=[PodRecord("alice", PATHS[0], OWNER, NOW_MS)]))
    await store.read_metadata(PATHS)
    _, removed = await asyncio.gather(
        store.commit(write(put("/alice/c/a"))),
        store.remove_pod(PodRemoval("alice", new_version(), NOW_MS)),
    )
    assert removed
    assert await store.read_metadata(PATHS) == dict.fromkeys(PATHS)
    assert await store.read_pod("alice") is None


def apply(writer: WriteConnection, target: str) -> None:
    assert writer.begin(wait_s=0)
    (outcome,) = writer.apply([write(put(target))])
    assert isinstance(outcome, Committed)


async def test_a_batch_that_was_undone_is_not_taken_for_another_of_the_same_count(
    database: Path,
) -> None:
    """The count of row changes is given again after a rollback: only commits may be told."""
    change_queue = new_change_queue()
    space = DiskSpace(database.parent)
    writer = WriteConnection(database, change_queue, space)
    other = WriteConnection(database, new_change_queue(), space)
    connection = open_reader(database)
    reader = ReadConnection(connection, change_queue)
    both = [path("/alice/"), path("/bob/")]
    assert reader.read_metadata(both) == dict.fromkeys(both)

    apply(writer, "/alice/")
    writer._connection.set_commit_hook(lambda: True)  # SQLite then undoes the transaction
    with pytest.raises(apsw.Error):
        writer.commit()
    apply(other, "/bob/")
    other.commit()
    await asyncio.sleep(0)

    assert read_row_count(connection) == 1
    snapshot = reader.read_metadata(both)
    assert snapshot[both[0]] is None
    assert snapshot[both[1]] is not None
    for each in (writer, other, reader):
        each.close()


@pytest.mark.parametrize("table", ["resources", "pods", "tokens"])
def test_the_database_counts_every_change_of_a_row_by_any_process(
    database: Path, table: str
) -> None:
    connection = apsw.Connection(str(database))
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(["'1'"] * len(columns))
    for count, statement in enumerate(
        [
            f"INSERT INTO {table} VALUES ({values})",
            f"UPDATE {table} SET {columns[-1]} = '2'",
            f"INSERT INTO {table} VALUES ({values}) ON CONFLICT DO UPDATE SET {columns[1]} = '3'",
            f"DELETE FROM {table}",
        ],
        start=1,
    ):
        connection.execute(statement)
        assert read_row_count(connection) == count
    connection.close()
