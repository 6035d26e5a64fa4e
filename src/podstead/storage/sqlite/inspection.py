"""Everything that a database contains, as of one moment (:mod:`podstead.storage.inspection`).

A read transaction keeps the moment. It delays no writer; only the log of the database cannot be
reused before it ends, so nothing but reading should happen meanwhile.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import apsw

from podstead.core.errors import StorageError
from podstead.core.identifiers import parent_container
from podstead.storage import inspection
from podstead.storage.copying.rows import ResumableTarget
from podstead.storage.files import sync_directory
from podstead.storage.schema import Row, SqlTable
from podstead.storage.sqlite import connection as sqlite_connection
from podstead.storage.sqlite.database import migrations
from podstead.storage.sqlite.statements import run_steps
from podstead.storage.steps import Begin, Result
from podstead.storage.tables import IS_FACT_OF_PLACE, OWN_ROWS, record_tables


def select_rows(connection: apsw.Connection, table: SqlTable, after: Row | None) -> Iterator[Row]:
    """The rows in the order of their keys, after that key. Raises apsw.Error."""
    conditions = [OWN_ROWS[table.name]] if table.name in OWN_ROWS else []
    key = ", ".join(table.key)
    if after is not None:
        conditions.append(f"({key}) > ({', '.join('?' * len(after))})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return connection.execute(
        f"SELECT {table.names} FROM {table.name}{where} ORDER BY {key}",  # noqa: S608 - our words
        after or (),
    )


def count_rows(connection: apsw.Connection, table: SqlTable) -> int:
    """How many rows there are. Raises apsw.Error."""
    count: int = connection.execute(f"SELECT count(*) FROM {table.name}").get  # noqa: S608
    return count


class SqliteTarget(ResumableTarget):
    """A migrated database that nobody else uses."""

    def __init__(self, database: Path) -> None:
        """Raises StorageError."""
        self._database = database
        with self._trouble():
            self._connection = sqlite_connection.open_writer(
                database, sqlite_connection.BusyHandler(sqlite_connection.WRITE_BUSY_S)
            )

    def close(self) -> None:
        self._connection.close(force=True)

    def _trouble(self) -> AbstractContextManager[None]:
        return _writing(self._database)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._trouble():
            self._connection.transaction_mode = "IMMEDIATE"
            with self._connection:
                yield

    def _fetch(self, statement: str, *values: str) -> list[Row]:
        rows: list[Row] = self._connection.execute(statement.replace("%s", "?"), values).fetchall()
        return rows

    def _empty_tables(self) -> None:
        for table in record_tables():
            where = f" WHERE {OWN_ROWS[table.name]}" if table.name == "counters" else ""
            self._connection.execute(f"DELETE FROM {table.name}{where}")  # noqa: S608

    def _add(self, table: SqlTable, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(table.columns))
        self._connection.executemany(f"{table.insert} VALUES ({marks})", rows)

    def _tidy(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def _writing(database: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise StorageError(f"{database} could not be written: {error}") from error


@contextmanager
def writers_locked_out(database: Path) -> Iterator[None]:
    """Let nobody write to the database. Raises StorageError."""
    with _writing(database):
        connection = sqlite_connection.open_writer(
            database, sqlite_connection.BusyHandler(sqlite_connection.WRITE_BUSY_S)
        )
        try:
            connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            connection.close()
            raise
    try:
        yield
    finally:
        connection.close(force=True)


def as_one_file(database: Path) -> None:
    """Let a database be readable without the files of a log beside it. Raises StorageError."""
    with _writing(database):
        connection = sqlite_connection.open_writer(
            database, sqlite_connection.BusyHandler(sqlite_connection.WRITE_BUSY_S)
        )
        try:
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        finally:
            connection.close()


_COUNT: Final = "(SELECT count(*) FROM resources m WHERE m.container = c.path)"
# "0" is the character after the slash: the range contains the root and all paths below it.
_USED: Final = f"""
    coalesce((SELECT sum({inspection.CHARGE}) FROM resources r
        WHERE r.path >= s.root AND r.path < substr(s.root, 1, length(s.root) - 1) || '0'), 0)
    + coalesce((SELECT sum(g.size_bytes) FROM garbage g WHERE g.root = s.root), 0)
    + coalesce((SELECT sum(h.size_bytes) FROM charges h WHERE h.root = s.root), 0)
"""  # noqa: S608 - our words

_WRONG_MEMBER_COUNTS: Final = (
    f"SELECT c.path, c.member_count, {_COUNT} FROM resources c"  # noqa: S608 - our words
    f" WHERE c.kind IN {inspection.CONTAINERS} AND c.member_count <> {_COUNT} ORDER BY c.path"
)
_WRONG_USAGE: Final = (
    f"SELECT root, used_bytes, actual FROM (SELECT s.root, s.used_bytes, {_USED} AS actual"  # noqa: S608
    " FROM storages s) WHERE used_bytes <> actual ORDER BY root"
)
COMPARISONS: Final = inspection.Comparisons(("path",), "instr", _WRONG_MEMBER_COUNTS, _WRONG_USAGE)
_MISPLACED: Final = f"SELECT r.path FROM resources r WHERE {COMPARISONS.misplaced}"  # noqa: S608


def recount(connection: apsw.Connection) -> None:
    """Record containers, numbers of members and usage of storages as they are. Raises
    apsw.Error."""
    misplaced: list[Row] = connection.execute(_MISPLACED).fetchall()
    for (path,) in misplaced:
        connection.execute(
            "UPDATE resources SET container = ? WHERE path = ?", (parent_container(path), path)
        )
    for path, _, actual in connection.execute(_WRONG_MEMBER_COUNTS).fetchall():
        connection.execute("UPDATE resources SET member_count = ? WHERE path = ?", (actual, path))
    for root, _, actual in connection.execute(_WRONG_USAGE).fetchall():
        connection.execute("UPDATE storages SET used_bytes = ? WHERE root = ?", (actual, root))


_WAIT_S: Final = 10.0
_STEP_PAGES: Final = 1024
_MAX_FAULTS: Final = 100
_PRIVATE_FILE: Final = 0o600


class SqliteInspection(inspection.StatementInspection):
    """Reads a database; with ``is_copy``, one that nobody writes to."""

    mark = "?"
    sql = COMPARISONS
    migrations = migrations()

    def __init__(self, database: Path, *, is_copy: bool = False) -> None:
        """Raises StorageError."""
        with _trouble(database):
            self._connection = (
                _open_copy(database) if is_copy else sqlite_connection.open_reader(database)
            )
            try:
                self._connection.set_busy_handler(sqlite_connection.BusyHandler(_WAIT_S))
                # Before the transaction begins, which is with its first read.
                self.moment_ms = time.time_ns() // 1_000_000
                self._connection.execute("BEGIN")
                self._connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
            except BaseException:
                self._connection.close()
                raise
        self._database = database

    def close(self) -> None:
        self._connection.close(force=True)

    def copy_to(self, target: str, on_progress: inspection.OnProgress) -> None:
        with _trouble(Path(target)):
            os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE))
            copy = apsw.Connection(target, flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                # Its source is the open transaction, so other processes' writes do not restart it.
                with copy.backup("main", self._connection, "main") as backup:
                    while not backup.done:
                        backup.step(_STEP_PAGES)
                        on_progress(backup.page_count - backup.remaining, backup.page_count)
                copy.execute(f"DELETE FROM facts WHERE {IS_FACT_OF_PLACE}")  # noqa: S608
                # One file, which can be read without the files of a log beside it.
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()
            finally:
                copy.close()
            sync_directory(Path(target).parent)

    def integrity_faults(self, *, is_quick: bool = False) -> Sequence[str]:
        check = "quick_check" if is_quick else "integrity_check"
        try:
            rows = self._connection.execute(f"PRAGMA {check}({_MAX_FAULTS})").fetchall()
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return [str(error)]
        except apsw.Error as error:
            raise _error(self._database, error) from error
        return [str(fault) for (fault,) in rows if fault != "ok"]

    def rows(self, table: SqlTable, *, after: Row | None = None) -> Iterator[Row]:
        with _trouble(self._database):
            yield from select_rows(self._connection, table, after)

    def row_count(self, table: SqlTable) -> int:
        with _trouble(self._database):
            return count_rows(self._connection, table)

    def _run(self, begin: Begin[Result]) -> Result:
        with _trouble(self._database):
            return run_steps(self._connection, begin)

    def _rows(self, statement: str, *values: str) -> Iterator[tuple[Any, ...]]:
        with _trouble(self._database):
            yield from self._connection.execute(statement, values)


def _open_copy(database: Path) -> apsw.Connection:
    # Immutable: no lock, and no file of a log, which a copy on read-only media could not have.
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"file:{quote(str(database.absolute()))}?immutable=1", flags=flags)


@contextmanager
def _trouble(database: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise _error(database, error) from error


def _error(database: Path, error: Exception) -> StorageError:
    otherwise = f"{database} could not be read or copied"
    return StorageError(sqlite_connection.explained(database, error, otherwise=otherwise))
