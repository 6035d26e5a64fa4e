"""A database is made smaller as far as that is possible at the moment."""

from __future__ import annotations

from collections.abc import AsyncIterator

import apsw
import pytest

from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Compaction
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import NOW_MS, commit, content_of, plant, put, write


@pytest.fixture
def space(layout: RootLayout) -> DiskSpace:
    return DiskSpace(layout.root)


@pytest.fixture
async def opened(layout: RootLayout, space: DiskSpace) -> AsyncIterator[SqliteStore]:
    """A store in a database of an earlier version, of which most was deleted."""
    connection = apsw.Connection(str(layout.database))
    for step in ("PRAGMA journal_mode = DELETE", "PRAGMA auto_vacuum = 0", "VACUUM"):
        connection.execute(step).fetchall()
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.close()
    opened = SqliteStore(layout.root, space=space)
    await opened.open()
    await plant(opened)
    names = [f"/alice/c/{number}" for number in range(100)]
    await commit(opened, write(*[put(name, b"x" * 20_000) for name in names]))
    await commit(opened, write(deletes=names[1:]))
    yield opened
    await opened.close()


async def compact(opened: SqliteStore, layout: RootLayout, *, is_alone: bool) -> Compaction:
    outcome = await opened.compact(now_ms=NOW_MS, is_alone=is_alone)
    connection = apsw.Connection(str(layout.database))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    assert await content_of(opened, "/alice/c/0") == b"x" * 20_000
    return outcome


async def test_a_database_of_an_earlier_version_shrinks_only_when_it_is_rewritten(
    opened: SqliteStore, layout: RootLayout
) -> None:
    assert await compact(opened, layout, is_alone=False) is Compaction.NEEDS_TO_BE_ALONE
    assert layout.database.stat().st_size > 1_500_000
    assert await compact(opened, layout, is_alone=True) is Compaction.REWRITTEN
    assert layout.database.stat().st_size < 300_000
    # From now on, it shrinks beside others, too.
    await commit(opened, write(put("/alice/c/large", b"x" * 60_000)))
    await commit(opened, write(deletes=["/alice/c/large"]))
    assert await compact(opened, layout, is_alone=False) is Compaction.SHRUNK


async def test_without_space_for_a_second_copy_nothing_is_rewritten(
    opened: SqliteStore, layout: RootLayout, space: DiskSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "free_bytes", lambda: 1_000_000)
    assert await compact(opened, layout, is_alone=True) is Compaction.NEEDS_SPACE
    assert layout.database.stat().st_size > 1_500_000
