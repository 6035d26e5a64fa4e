"""Everything that a database contains, as of one moment (:mod:`podstead.storage.inspection`).

A read transaction keeps the moment. It delays no writer; only the log of the database cannot be
reused before it ends, so nothing but reading should happen meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import apsw

from podstead.core.errors import StorageError
from podstead.storage.copying.tables import IS_FACT_OF_PLACE
from podstead.storage.inspection import OnProgress
from podstead.storage.private_files import sync_directory
from podstead.storage.schema import Row, Table
from podstead.storage.sqlite import copying, figures
from podstead.storage.sqlite.connection import BusyHandler, open_reader
from podstead.storage.sqlite.migrate import migrations
from podstead.storage.sqlite.statements import run_steps
from podstead.storage.sqlite.trouble import explained
from podstead.storage.statement_inspection import StatementInspection
from podstead.storage.steps import Begin, Result

_WAIT_S: Final = 10.0
_STEP_PAGES: Final = 1024
_MAX_FAULTS: Final = 100
_PRIVATE_FILE: Final = 0o600


class SqliteInspection(StatementInspection):
    """Reads a database; with ``is_copy``, one that nobody writes to."""

    mark = "?"
    sql = figures.COMPARISONS
    migrations = migrations()

    def __init__(self, database: Path, *, is_copy: bool = False) -> None:
        """Raises StorageError."""
        with _trouble(database):
            self._connection = _open_copy(database) if is_copy else open_reader(database)
            try:
                self._connection.set_busy_handler(BusyHandler(_WAIT_S))
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

    def copy_to(self, target: str, on_progress: OnProgress) -> None:
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

    def rows(self, table: Table, *, after: Row | None = None) -> Iterator[Row]:
        with _trouble(self._database):
            yield from copying.select_rows(self._connection, table, after)

    def row_count(self, table: Table) -> int:
        with _trouble(self._database):
            return copying.count_rows(self._connection, table)

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
    return StorageError(explained(database, error, otherwise=otherwise))
