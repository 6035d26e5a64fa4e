"""The schema: made, brought up to date, refused if it is newer, by several processes at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from podstead.core.errors import SchemaTooNew, StorageError
from podstead.storage.layout import RootLayout
from podstead.storage.migrations import Migration, read_migrations
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore, migrate

FIRST = Migration(1, "CREATE TABLE one (a BIGINT); INSERT INTO one (a) VALUES (1)")
SECOND = Migration(2, "ALTER TABLE one ADD COLUMN b BIGINT; UPDATE one SET b = a + 1")
BROKEN = Migration(2, "ALTER TABLE one ADD COLUMN b BIGINT; INSERT INTO nowhere VALUES (1)")


def rows(database: Path, select: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found: list[tuple[object, ...]] = connection.execute(select).fetchall()
        return found
    finally:
        connection.close()


def test_the_steps_are_numbered_from_one_without_a_gap() -> None:
    numbers = [migration.number for migration in read_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert read_migrations()[-1].number == len(numbers)


def test_a_new_database_has_the_newest_schema_and_logs_ahead(tmp_path: Path) -> None:
    database = tmp_path / "new.db"
    migrate(database)
    assert rows(database, "SELECT version FROM schema_version") == [(read_migrations()[-1].number,)]
    assert rows(database, "PRAGMA journal_mode") == [("wal",)]


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    database = tmp_path / "new.db"
    migrate(database, steps=[FIRST])
    migrate(database, steps=[FIRST])
    assert rows(database, "SELECT * FROM one") == [(1,)]


def test_only_missing_steps_are_applied_to_an_older_database(tmp_path: Path) -> None:
    database = tmp_path / "old.db"
    migrate(database, steps=[FIRST])
    migrate(database, steps=[FIRST, SECOND])
    assert rows(database, "SELECT * FROM one") == [(1, 2)]
    assert rows(database, "SELECT version FROM schema_version") == [(2,)]


def test_a_step_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    database = tmp_path / "old.db"
    migrate(database, steps=[FIRST])
    with pytest.raises(StorageError):
        migrate(database, steps=[FIRST, BROKEN])
    assert rows(database, "SELECT * FROM one") == [(1,)]
    assert rows(database, "SELECT version FROM schema_version") == [(1,)]


def test_a_new_database_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    database = tmp_path / "new.db"
    with pytest.raises(StorageError):
        migrate(database, steps=[FIRST, BROKEN])
    assert rows(database, "SELECT name FROM sqlite_schema") == []


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    database = tmp_path / "newer.db"
    migrate(database, steps=[FIRST, SECOND])
    before = database.read_bytes()
    with pytest.raises(SchemaTooNew, match="newer version of Podstead"):
        migrate(database, steps=[FIRST])
    assert database.read_bytes() == before


def test_several_processes_migrate_at_once(tmp_path: Path) -> None:
    database = tmp_path / "new.db"
    script = (
        "import sys; from pathlib import Path; from podstead.storage.sqlite import migrate;"
        " sys.stdin.readline(); migrate(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(database)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    assert [process.wait() for process in processes] == [0] * 4
    assert rows(database, "SELECT version FROM schema_version") == [(read_migrations()[-1].number,)]
    assert rows(database, "SELECT name, value FROM counters") == [("changes", 0), ("rows", 0)]


# --- What the store opens ---------------------------------------------------------------------


async def test_a_store_opens_no_database_of_an_older_schema(tmp_path: Path) -> None:
    migrate(RootLayout(tmp_path).database, steps=[Migration(0, "")])
    with pytest.raises(StorageError, match="migrate"):
        await SqliteStore(tmp_path).open()


async def test_a_store_opens_no_database_of_a_newer_schema(tmp_path: Path) -> None:
    layout = prepare_root(tmp_path / "data")
    newer = Migration(read_migrations()[-1].number + 1, "CREATE TABLE newer (a BIGINT)")
    migrate(layout.database, steps=[*read_migrations(), newer])
    with pytest.raises(SchemaTooNew):
        await SqliteStore(layout.root).open()
