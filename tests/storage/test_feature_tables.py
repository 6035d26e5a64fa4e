"""The tables of a feature are migrated, written, copied and removed with those of the server."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from podstead.app.adapters.engine import new_store
from podstead.app.adapters.root import prepared_root
from podstead.app.operator.backup import back_up_to_archive, restore_backup
from podstead.app.operator.check import check_root
from podstead.app.operator.checking.findings import Code, Finding
from podstead.app.operator.copying import Place, copy_everything
from podstead.config import Settings
from podstead.core.errors import SchemaTooNew, StorageError
from podstead.storage.protocol import Store
from podstead.storage.records import (
    Absent,
    DropRow,
    MoveRows,
    PodRecord,
    PodRemoval,
    PutRow,
    Record,
    VersionConflict,
)
from podstead.storage.schema import (
    Row,
    Schema,
    SqlTable,
    feature_schemas,
    forget_schema,
    register_schema,
    table,
)
from tests.storage.engine_suite.engine import (
    NOW_MS,
    STORAGE,
    commit,
    new_version,
    path,
    plant,
    put,
    read,
    write,
)
from tests.support.postgresql import new_database

LINKS: Final = table(
    "bookmarks_links: storage url title visits#number icon#bytes", key=2, storage="storage"
)
FIRST: Final = """
    CREATE TABLE bookmarks_links (
        storage TEXT NOT NULL,
        url TEXT NOT NULL,
        title TEXT,
        visits BIGINT NOT NULL,
        PRIMARY KEY (storage, url)
    ) WITHOUT ROWID;
    CREATE INDEX bookmarks_by_visits ON bookmarks_links (visits);
"""
SECOND: Final = "ALTER TABLE bookmarks_links ADD COLUMN icon BLOB"
BOOKMARKS: Final = Schema("bookmarks", (LINKS,), (FIRST, SECOND))

ONE: Final = (STORAGE, "https://one.example/", "One", 1, b"\x00\xff")
TWO: Final = (STORAGE, "https://two.example/", None, 2**40, None)
OF_BOB: Final = ("/bob/", "https://one.example/", "Ä", 0, None)


@pytest.fixture(autouse=True)
def feature() -> Iterator[None]:
    register_schema(BOOKMARKS)
    yield
    forget_schema("bookmarks")


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Those of a data root that does not exist yet."""
    root = tmp_path / "data"
    if request.param == "sqlite":
        yield Settings(root=root)
        return
    with new_database() as database:
        yield Settings(root=root, database=database)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Store]:
    with prepared_root(settings):
        store = new_store(settings)
        await store.open()
        try:
            yield store
        finally:
            await store.close()


async def fill(settings: Settings) -> None:
    async with opened(settings) as store:
        await plant(store)
        await commit(store, write(records=[_pod("alice"), _pod("bob"), *_puts(ONE, TWO, OF_BOB)]))


async def rows_of(store: Store) -> list[Row]:
    return list(await store.fetch(LINKS.select("ORDER BY storage, url")))


def _pod(name: str) -> PodRecord:
    return PodRecord(name, path(f"/{name}/"), f"https://{name}.example/#me", NOW_MS)


def _puts(*rows: Row) -> list[Record]:
    return [PutRow(LINKS, row) for row in rows]


def execute(settings: Settings, statement: str) -> list[Any]:
    """Run a statement behind the back of the server."""
    if settings.database is not None:
        with psycopg.connect(settings.database) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []
    with closing(sqlite3.connect(settings.root / "podstead.db")) as database, database:
        return database.execute(statement).fetchall()


async def test_rows_are_part_of_a_write(settings: Settings) -> None:
    async with opened(settings) as store, opened_again(settings) as other:
        await plant(store)
        await commit(store, write(put("/alice/c/a"), records=_puts(ONE, TWO)))
        assert await rows_of(other) == [ONE, TWO]
        changed = (*ONE[:2], "Another", 2, None)
        await commit(store, write(records=[*_puts(changed), DropRow(LINKS, TWO[:2])]))
        await commit(store, write(records=[DropRow(LINKS, TWO[:2])]))
        assert await rows_of(other) == [changed]
        found = await other.fetch(LINKS.select("WHERE visits >= %s AND url = %s"), 1, ONE[1])
        assert found == [changed]
        refused = write(
            put("/alice/c/b"), preconditions=[Absent(path("/alice/c/a"))], records=_puts(TWO)
        )
        assert isinstance(await store.commit(refused), VersionConflict)
        assert await rows_of(other) == [changed]


@asynccontextmanager
async def opened_again(settings: Settings) -> AsyncIterator[Store]:
    """As another worker opens it."""
    store = new_store(settings)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_a_row_that_cannot_be_stored_fails_its_own_write_only(settings: Settings) -> None:
    async with opened(settings) as store:
        await plant(store)
        wrong = write(put("/alice/c/a"), records=_puts((*ONE[:3], None, None)))
        right = write(put("/alice/c/b"), records=_puts(TWO))
        outcomes = await asyncio.gather(
            store.commit(wrong), store.commit(right), return_exceptions=True
        )
        assert isinstance(outcomes[0], StorageError)
        assert await rows_of(store) == [TWO]
        assert await read(store, "/alice/c/a") is None


async def test_two_workers_that_write_the_same_rows_wait_for_each_other(settings: Settings) -> None:
    async with opened(settings) as store, opened_again(settings) as other:
        rows = [(STORAGE, f"https://{number}.example/", None, 0, None) for number in range(20)]
        await asyncio.gather(
            *(commit(store, write(records=_puts(*rows))) for _ in range(5)),
            *(commit(other, write(records=_puts(*reversed(rows)))) for _ in range(5)),
        )
        assert len(await rows_of(store)) == 20


@pytest.mark.parametrize(
    "row",
    [ONE[:4], (*ONE[:3], "1", None), (*ONE[:3], 2**63, None), (*ONE[:3], 1, "icon"), (1, *ONE[1:])],
)
def test_values_that_are_no_row_are_refused_where_they_are_made(row: Row) -> None:
    with pytest.raises(ValueError, match="are no values"):
        PutRow(LINKS, row)
    with pytest.raises(ValueError, match="are no values"):
        DropRow(LINKS, ONE[:1])
    with pytest.raises(ValueError, match="not the table of a feature"):
        PutRow(table("bookmarks_others: name"), ("name",))


def test_a_feature_has_no_tables_with_the_names_of_others() -> None:
    for name in ("resources", "bookmark", "bookmarks_a; DROP TABLE b"):
        other = Schema("bookmarks", (SqlTable(name, LINKS.columns, LINKS.key),), (FIRST,))
        with pytest.raises(ValueError, match="no name for a table"):
            register_schema(other)


async def test_the_rows_of_a_pod_are_removed_and_renamed_with_it(settings: Settings) -> None:
    await fill(settings)
    async with opened(settings) as store:
        await commit(store, write(records=[MoveRows(path("/bob/"), path("/robert/"))]))
        await store.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
        assert await rows_of(store) == [("/robert/", *OF_BOB[1:])]


# --- The schema -------------------------------------------------------------------------------


async def test_only_missing_migrations_are_applied(settings: Settings) -> None:
    register_schema(replace(BOOKMARKS, migrations=(FIRST,)))
    async with opened(settings):
        pass
    insert = "INSERT INTO bookmarks_links (storage, url, title, visits) VALUES ('/a/', 'u', 't', 1)"
    execute(settings, insert)
    register_schema(BOOKMARKS)
    with pytest.raises(StorageError, match="schema bookmarks 1; migrate it to 2"):
        async with opened_again(settings):
            pass
    async with opened(settings) as store:
        assert await rows_of(store) == [("/a/", "u", "t", 1, None)]
    register_schema(replace(BOOKMARKS, migrations=(FIRST,)))
    with pytest.raises(SchemaTooNew, match="schema bookmarks 2; this version knows 1"):
        async with opened(settings):
            pass


async def test_postgresql_can_have_other_statements(settings: Settings) -> None:
    second = {2: "ALTER TABLE bookmarks_links ADD COLUMN icon BYTEA DEFAULT 'x'"}
    register_schema(replace(BOOKMARKS, postgresql=second))
    async with opened(settings):
        pass
    execute(settings, "INSERT INTO bookmarks_links (storage, url, visits) VALUES ('/a/', 'u', 1)")
    (icon,) = execute(settings, "SELECT icon FROM bookmarks_links")[0]
    assert icon == (None if settings.database is None else b"x")


async def test_texts_compare_by_bytes(settings: Settings) -> None:
    async with opened(settings) as store:
        urls = ["Z", "a", "a-b", "a/b", "é"]
        await commit(store, write(records=_puts(*((STORAGE, url, None, 0, None) for url in urls))))
        assert [url for _, url, *_ in await rows_of(store)] == urls


async def test_without_features_there_is_no_table_for_them(settings: Settings) -> None:
    others = [each for each in feature_schemas() if each is not BOOKMARKS]
    for each in (BOOKMARKS, *others):
        forget_schema(each.feature)
    async with opened(settings):
        pass
    for each in others:
        register_schema(each)
    with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
        execute(settings, "SELECT * FROM feature_schemas")
    register_schema(BOOKMARKS)
    async with opened(settings) as store:  # and the feature can be added later
        assert await rows_of(store) == []


async def test_a_server_starts_without_the_feature(settings: Settings) -> None:
    await fill(settings)
    forget_schema("bookmarks")
    async with opened(settings) as store:
        await commit(store, write(put("/alice/c/a")))
    register_schema(BOOKMARKS)
    async with opened(settings) as store:
        assert await rows_of(store) == [ONE, TWO, OF_BOB]


# --- Copies -----------------------------------------------------------------------------------


def ignore(*_: object) -> None:
    pass


async def test_a_backup_has_the_rows(settings: Settings, tmp_path: Path) -> None:
    await fill(settings)
    backup = tmp_path / "backup.tar"
    await back_up_to_archive(settings, backup, on_step=ignore)
    restored = Settings(root=tmp_path / "restored")
    restore_backup(restored, backup, on_step=ignore)
    async with opened(restored) as store:
        assert await rows_of(store) == [ONE, TWO, OF_BOB]


async def test_a_backup_with_a_newer_schema_of_a_feature_is_refused(
    settings: Settings, tmp_path: Path
) -> None:
    await fill(settings)
    backup = tmp_path / "backup.tar"
    await back_up_to_archive(settings, backup, on_step=ignore)
    register_schema(replace(BOOKMARKS, migrations=(FIRST,)))
    with pytest.raises(SchemaTooNew, match="schema bookmarks 2"):
        restore_backup(Settings(root=tmp_path / "restored"), backup, on_step=ignore)
    assert list((tmp_path / "restored").iterdir()) == []


async def test_a_copy_has_the_rows(settings: Settings, tmp_path: Path) -> None:
    """From each engine to the other one, and a second time after the first was interrupted."""
    await fill(settings)
    source = Place(settings.root, settings.database)
    with new_database() as database:
        other = tmp_path / "other"
        target = Place(other, database if settings.database is None else None)
        await copy_everything(source, target, start_over=False, on_step=ignore)
        copied = Settings(root=other, database=target.database)
        async with opened(copied) as store:
            assert await rows_of(store) == [ONE, TWO, OF_BOB]


async def test_rows_of_a_feature_that_is_not_installed_are_never_left_out(
    settings: Settings, tmp_path: Path
) -> None:
    await fill(settings)
    forget_schema("bookmarks")
    try:
        target = Place(tmp_path / "other")
        with pytest.raises(StorageError, match="tables of bookmarks"):
            await copy_everything(
                Place(settings.root, settings.database), target, start_over=False, on_step=ignore
            )
        backup = tmp_path / "backup.tar"
        if settings.database is not None:
            with pytest.raises(StorageError, match="tables of bookmarks"):
                await back_up_to_archive(settings, backup, on_step=ignore)
            return
        await back_up_to_archive(settings, backup, on_step=ignore)  # of the file as a whole
        restore_backup(Settings(root=tmp_path / "restored"), backup, on_step=ignore)
    finally:
        register_schema(BOOKMARKS)
    async with opened(Settings(root=tmp_path / "restored")) as store:
        assert await rows_of(store) == [ONE, TWO, OF_BOB]


async def test_a_check_reads_the_tables_and_finds_nothing_wrong(settings: Settings) -> None:
    await fill(settings)
    findings = await check_root(
        settings, is_quick=False, repair=False, on_step=ignore, on_finding=ignore
    )
    assert [str(each) for each in findings if "bookmarks" in str(each)] == []


async def test_a_check_finds_rows_whose_pod_is_gone(settings: Settings) -> None:
    await fill(settings)
    execute(settings, "DELETE FROM pods WHERE name = 'bob'")
    for repair in (False, True):
        found = await _checked(settings, repair=repair)
        assert [(each.where, each.is_repaired) for each in found] == [
            ("bookmarks_links /bob/", repair)
        ]
        assert found[0].what == "1 row of a pod that is not there"
    async with opened(settings) as store:
        assert await rows_of(store) == [ONE, TWO]
    assert await _checked(settings) == []
    assert OF_BOB[1] in "".join(
        each.read_text() for each in (settings.root / "set-aside").rglob("*") if each.is_file()
    )


async def test_rows_of_a_pod_that_is_there_again_are_not_removed(settings: Settings) -> None:
    await fill(settings)
    execute(settings, "DELETE FROM pods WHERE name = 'alice'")
    (found,) = await _checked(settings, repair=True)
    assert not found.is_repaired, "its root container exists"
    async with opened(settings) as store:
        assert await rows_of(store) == [ONE, TWO, OF_BOB]


async def _checked(settings: Settings, *, repair: bool = False) -> list[Finding]:
    """What a check finds of rows."""
    found: Sequence[Finding] = await check_root(
        settings,
        is_quick=True,
        repair=repair,
        on_step=lambda *_: None,
        on_finding=lambda _: None,
    )
    return [each for each in found if each.code is Code.ROWS_ORPHANED]
