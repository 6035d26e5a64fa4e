"""What is deleted gives its room back: no deletion grows the file, and it becomes smaller."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from podstead.core.errors import StorageError
from podstead.storage import removal
from podstead.storage.layout import RootLayout
from podstead.storage.migrations import read_migrations
from podstead.storage.records import ChangeType, NoPod, PodRecord, PodRemoval, VersionConflict
from podstead.storage.sqlite import SqliteStore, compacting, convert_to_shrinkable
from tests.storage.engine_suite.engine import (
    NOW_MS,
    STORAGE,
    commit,
    content_of,
    new_version,
    plant,
    put,
    read,
    write,
)

RESOURCES = 3000
MIB = 1024 * 1024


@pytest.fixture
async def opened(layout: RootLayout) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(layout.root)
    await opened.open()
    await plant(opened)
    yield opened
    await opened.close()


async def fill_pod(opened: SqliteStore) -> None:
    """A pod of many resources, which were not made in the order of their names."""
    await commit(opened, write(records=[PodRecord("alice", STORAGE, "w", 1)]))
    await commit(opened, write(put("/alice/.acl", b"rules"), put("/alice/c/.acl", b"rules")))
    numbers = random.Random(1).sample(range(10**6), RESOURCES)
    for start in range(0, RESOURCES, 100):
        some = numbers[start : start + 100]
        await commit(opened, write(*[put(f"/alice/c/{number}", b"x" * 1000) for number in some]))


def checkpointed_bytes(layout: RootLayout) -> int:
    connection = apsw.Connection(str(layout.database))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return layout.database.stat().st_size


def log_bytes(layout: RootLayout) -> int:
    return layout.database.with_name("podstead.db-wal").stat().st_size


async def test_removing_a_pod_does_not_grow_the_file_and_gives_it_back(
    layout: RootLayout, opened: SqliteStore
) -> None:
    await fill_pod(opened)
    before = checkpointed_bytes(layout)
    assert await opened.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
    assert layout.database.stat().st_size <= before
    assert checkpointed_bytes(layout) <= before
    await opened.sweep(now_ms=NOW_MS)
    # What is left is the log of changes, and a little that stays free.
    assert layout.database.stat().st_size < before // 4 + compacting.MIN_FREE_PAGES * 4096
    await plant(opened)
    await commit(opened, write(put("/alice/c/new", b"new")))
    assert await content_of(opened, "/alice/c/new") == b"new"


async def test_the_log_stays_small_while_a_large_pod_goes(
    layout: RootLayout, opened: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is a transaction of its own, between which the log is brought into the file."""
    assert opened._opened is not None
    connection = opened._opened.writer._connection._connection
    connection.execute("PRAGMA wal_autocheckpoint = 100")
    monkeypatch.setattr(removal, "BATCH_ROWS", 50)
    await fill_pod(opened)
    checkpointed_bytes(layout)
    assert await opened.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
    assert log_bytes(layout) < MIB


async def test_others_write_while_a_large_pod_goes(
    opened: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH_ROWS", 10)
    await fill_pod(opened)
    await commit(opened, write(put("/bob/")))
    removing = asyncio.create_task(opened.remove_pod(PodRemoval("alice", new_version(), NOW_MS)))
    written = 0
    while not removing.done():
        await commit(opened, write(put(f"/bob/{written}")))
        written += 1
    assert await removing
    assert written > RESOURCES // 10 // 4


async def test_a_removal_that_is_cut_off_lets_nobody_in_and_is_finished_by_a_sweep(
    layout: RootLayout, opened: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_pod(opened)
    monkeypatch.setattr(removal, "BATCH_ROWS", 10)

    async def fail(_store: object) -> None:
        raise StorageError("cut off")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "_finish_removals", fail)
        assert await opened.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
    other = SqliteStore(layout.root)
    await other.open()
    # Neither rules nor an owner are left, and the name is not free.
    assert await read(other, "/alice/.acl") is None
    assert await read(other, "/alice/c/.acl") is None
    assert await other.read_pod("alice") is None
    assert await read(other, "/alice/") is not None
    again = write(put("/alice/"), preconditions=[NoPod("alice")])
    assert isinstance(await other.commit(again), VersionConflict)
    await other.sweep(now_ms=NOW_MS)
    assert await read(other, "/alice/") is None
    logged = [row.change for row in await other.changes_after(0, limit=2 * RESOURCES)]
    assert [change.activity for change in logged] == [ChangeType.DELETE] * (RESOURCES + 4)
    # Members before their containers, and the rules last.
    expected = ["/alice/c/", "/alice/", "/alice/c/.acl", "/alice/.acl"]
    assert [change.path for change in logged[-4:]] == expected
    assert not await other.list_entries("removal", limit=1, now_ms=NOW_MS)
    await commit(other, write(put("/alice/")))
    await other.close()


async def test_many_deletions_give_the_file_back(layout: RootLayout, opened: SqliteStore) -> None:
    names = [f"/alice/c/{number}" for number in range(200)]
    for start in range(0, 200, 50):
        await commit(
            opened, write(*[put(name, b"x" * 50_000) for name in names[start : start + 50]])
        )
    before = checkpointed_bytes(layout)
    for start in range(0, 200, 50):
        await commit(opened, write(deletes=names[start : start + 50]))
    await opened.sweep(now_ms=NOW_MS)
    assert layout.database.stat().st_size < before // 4


async def test_rules_that_are_written_and_deleted_all_the_time_leave_little(
    layout: RootLayout, opened: SqliteStore
) -> None:
    before = checkpointed_bytes(layout)
    for number in range(500):
        await commit(opened, write(put("/alice/c/.acl", b"%060000d" % number)))
        await commit(opened, write(deletes=["/alice/c/.acl"], at_ms=NOW_MS + number))
    assert checkpointed_bytes(layout) < before + 4 * MIB


def old_database(database: Path) -> None:
    """As earlier versions made it."""
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA journal_mode = WAL")
    for step in read_migrations():
        connection.execute(step.sql)
    connection.execute(
        "CREATE TABLE schema_version (version BIGINT NOT NULL);"
        f"INSERT INTO schema_version VALUES ({read_migrations()[-1].number})"
    )
    connection.execute("INSERT INTO facts VALUES ('kept', 'yes')")
    connection.close()


@pytest.mark.parametrize(("free_bytes", "mode"), [(1024 * MIB, 2), (0, 0)])
def test_a_database_of_an_earlier_version_is_rewritten_if_there_is_room(
    tmp_path: Path, free_bytes: int, mode: int
) -> None:
    database = tmp_path / "old.db"
    old_database(database)
    for _ in range(2):
        convert_to_shrinkable(database, free_bytes=free_bytes)
        connection = apsw.Connection(str(database))
        assert connection.execute("PRAGMA auto_vacuum").get == mode
        assert connection.execute("PRAGMA journal_mode").get == "wal"
        assert connection.execute("SELECT value FROM facts").get == "yes"
        connection.close()


def test_a_large_database_of_an_earlier_version_does_not_keep_the_start_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "old.db"
    old_database(database)
    monkeypatch.setattr(compacting, "MAX_CONVERTED_BYTES", 1000)
    convert_to_shrinkable(database, free_bytes=1024 * MIB)
    connection = apsw.Connection(str(database))
    assert connection.execute("PRAGMA auto_vacuum").get == 0
    connection.close()
