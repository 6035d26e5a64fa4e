"""Disks that fail, files that are damaged, databases that are locked: trouble, never absence."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from podstead.core.errors import DiskFull, Overloaded, StorageError
from podstead.storage.layout import RootLayout
from podstead.storage.records import Committed, PodRecord, PodRemoval, TokenRecord, Write
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore, transaction
from tests.storage.engine_suite.engine import (
    STORAGE,
    commit,
    content_of,
    new_version,
    path,
    plant,
    put,
    read,
    read_present,
    write,
)
from tests.storage.faulty_vfs import FaultyVfs

_TOKEN = TokenRecord("token", "alice", "https://alice.example/#me", 1, None)

DISK_FAULTS = [
    ("sync", apsw.IOError),
    ("write", apsw.IOError),
    ("write", apsw.FullError),
]


@pytest.fixture
async def vfs() -> AsyncIterator[FaultyVfs]:
    faulty = FaultyVfs()
    yield faulty
    faulty.unregister()


@pytest.fixture
async def store(layout: RootLayout, vfs: FaultyVfs) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(layout.root, vfs=vfs.vfs_name)
    await store.open()
    await plant(store)
    yield store
    await store.close()


@pytest.fixture
async def other(layout: RootLayout) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(layout.root)
    await store.open()
    yield store
    await store.close()


@pytest.mark.parametrize(("operation", "error"), DISK_FAULTS)
async def test_no_write_of_a_batch_that_the_disk_refuses_is_acknowledged_or_seen(
    store: SqliteStore,
    other: SqliteStore,
    vfs: FaultyVfs,
    operation: str,
    error: type[apsw.Error],
) -> None:
    writes = [write(put(f"/alice/c/{number}", b"x" * 2000)) for number in range(10)]
    with vfs.failing(operation, error):
        outcomes = await asyncio.gather(*map(store.commit, writes), return_exceptions=True)
    expected = DiskFull if error is apsw.FullError else StorageError
    assert [type(outcome) for outcome in outcomes] == [expected] * 10
    for reader in (store, other):
        for wanted in writes:
            assert await read(reader, wanted.puts[0].path) is None


@pytest.mark.parametrize(("operation", "error"), DISK_FAULTS)
async def test_writing_resumes_once_the_disk_recovers(
    store: SqliteStore,
    other: SqliteStore,
    vfs: FaultyVfs,
    operation: str,
    error: type[apsw.Error],
) -> None:
    with vfs.failing(operation, error), pytest.raises(StorageError):
        await store.commit(write(put("/alice/c/a", b"lost")))
    await commit(store, write(put("/alice/c/a", b"kept")))
    assert await content_of(other, "/alice/c/a") == b"kept"


async def test_a_failing_disk_is_trouble_to_writes_of_other_kinds(
    store: SqliteStore, vfs: FaultyVfs
) -> None:
    await commit(store, write(records=[PodRecord("alice", path("/alice/"), "w", 1)]))
    with vfs.failing("sync", apsw.IOError), pytest.raises(StorageError):
        await store.remove_pod(PodRemoval("alice", new_version(), 0))
    assert await store.remove_pod(PodRemoval("alice", new_version(), 0))


async def test_what_cannot_be_read_is_trouble_and_readable_later(
    layout: RootLayout, other: SqliteStore, vfs: FaultyVfs
) -> None:
    await plant(other)
    names = [f"/alice/c/{number}" for number in range(500)]
    await commit(other, write(*[put(name, b"x" * 500) for name in names]))
    present = await read_present(other, names[0])
    reader = SqliteStore(layout.root, vfs=vfs.vfs_name)
    await reader.open()
    calls: list[Callable[[], object]] = [
        lambda: reader.read_metadata([path(names[0])]),
        lambda: reader.open_body(present),
        lambda: reader.list_members(path("/alice/c/"), limit=1000),
    ]
    for call in calls:
        with vfs.failing("read", apsw.IOError), pytest.raises(StorageError):
            await call()  # type: ignore[misc]
    assert await read(reader, names[0]) == present
    assert await content_of(reader, names[0]) == b"x" * 500
    assert len(await reader.list_members(path("/alice/c/"), limit=1000)) == 500
    await reader.close()


async def test_a_connection_that_cannot_be_rolled_back_is_replaced(
    store: SqliteStore, vfs: FaultyVfs
) -> None:
    assert store._opened is not None
    broken = store._opened.writer._connection._connection

    def refuse_rollback(_cursor: object, sql: str, _values: object) -> bool:
        if sql == "ROLLBACK":
            raise apsw.IOError("injected")
        return True

    broken.exec_trace = refuse_rollback
    again = write(put("/alice/c/a"), records=[_TOKEN, _TOKEN])
    with pytest.raises(StorageError):
        await store.commit(again)
    await commit(store, write(put("/alice/c/a", b"kept")))
    assert await content_of(store, "/alice/c/a") == b"kept"
    assert store._opened.writer._connection._connection is not broken


async def test_a_bug_in_one_job_does_not_stop_the_writer(store: SqliteStore) -> None:
    assert store._opened is not None

    def faulty(connection: apsw.Connection) -> None:
        raise ZeroDivisionError

    with pytest.raises(StorageError):
        await store._opened.writer.run(faulty)
    await commit(store, write(put("/alice/c/a")))


async def test_more_writes_than_may_wait_are_refused_at_once(layout: RootLayout) -> None:
    """Those to one storage leave half of the room to the others."""
    store = SqliteStore(layout.root, max_waiting=6)
    await store.open()
    await plant(store)
    await commit(store, write(put("/bob/")))
    paths = [*[f"/alice/c/{number}" for number in range(5)], "/bob/1"]
    writes: list[Write] = [write(put(path)) for path in paths]
    outcomes = await asyncio.gather(*map(store.commit, writes), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        *[Committed] * 3,
        *[Overloaded] * 2,
        Committed,
    ]
    await commit(store, writes[4])
    await store.close()


# --- Damaged files ----------------------------------------------------------------------------


async def test_a_file_that_is_not_a_database_is_an_error(layout: RootLayout) -> None:
    layout.database.write_bytes(b"This is no database. " * 500)
    with pytest.raises(StorageError):
        await SqliteStore(layout.root).open()
    with pytest.raises(StorageError):
        prepare_root(layout.root)


async def test_a_missing_database_is_trouble_and_not_made(layout: RootLayout) -> None:
    layout.database.unlink()
    with pytest.raises(StorageError):
        await SqliteStore(layout.root).open()
    assert not layout.database.exists()


async def test_damaged_pages_are_trouble(layout: RootLayout) -> None:
    names = [f"/alice/c/{number}" for number in range(500)]
    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    await commit(store, write(*[put(name, b"x" * 500) for name in names]))
    present = await read_present(store, names[0])
    await store.close()
    _overwrite_pages_of(layout.database, "resources", "bodies")
    await store.open()
    with pytest.raises(StorageError):
        await store.read_metadata([path(name) for name in names])
    with pytest.raises(StorageError):
        await store.open_body(present)
    with pytest.raises(StorageError):
        await store.commit(write(put("/alice/c/new")))
    await store.close()


def _overwrite_pages_of(database: Path, *tables: str) -> None:
    connection = apsw.Connection(str(database))
    pages: list[tuple[Any, ...]] = connection.execute(
        f"SELECT pageno FROM dbstat WHERE name IN ({', '.join('?' * len(tables))})", tables
    ).fetchall()
    page_bytes: int = connection.execute("PRAGMA page_size").get
    connection.close()
    with database.open("r+b") as file:
        for (number,) in pages:
            file.seek((number - 1) * page_bytes)
            file.write(b"\xff" * page_bytes)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE resources SET kind = 99",
        "UPDATE resources SET path = CAST(x'2fff' AS TEXT) WHERE path = '/alice/c/a'",
        "DELETE FROM bodies",
        "UPDATE bodies SET content = x'00'",
    ],
)
async def test_damaged_rows_are_trouble(layout: RootLayout, damage: str) -> None:
    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    await commit(store, write(put("/alice/c/a", b"content")))
    present = await read_present(store, "/alice/c/a")
    connection = apsw.Connection(str(layout.database))
    connection.execute(damage)
    connection.close()
    with pytest.raises(StorageError):  # noqa: PT012 - one call either way
        if "bodies" in damage:
            await store.open_body(present)
        else:
            await store.list_members(path("/alice/c/"), limit=10)
    await store.close()


# --- Locks ------------------------------------------------------------------------------------

_HOLD_LOCK = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
print("released", flush=True)
"""


@contextmanager
def locked_by_another_process(database: Path) -> Iterator[Callable[[], None]]:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD_LOCK, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    stdin, stdout = holder.stdin, holder.stdout
    assert stdout.readline() == "locked\n"

    def release() -> None:
        stdin.write("\n")
        stdin.flush()

    with holder:
        try:
            yield release
        finally:
            stdin.close()


async def test_a_write_waits_for_another_process_while_reads_go_on(
    layout: RootLayout, other: SqliteStore
) -> None:
    await plant(other)
    with locked_by_another_process(layout.database) as release:
        waiting = asyncio.create_task(other.commit(write(put("/alice/c/a"))))
        for _ in range(100):
            await asyncio.sleep(0)
            assert await read(other, STORAGE) is not None
        assert not waiting.done()
        release()
        assert await waiting == Committed(None)


async def test_a_write_that_waits_too_long_is_trouble_and_changes_nothing(
    layout: RootLayout, other: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plant(other)
    monkeypatch.setattr(transaction, "WRITE_BUSY_S", 0.01)
    with locked_by_another_process(layout.database):
        with pytest.raises(StorageError):
            await other.commit(write(put("/alice/c/a")))
        assert await read(other, "/alice/c/a") is None
    await commit(other, write(put("/alice/c/a")))
