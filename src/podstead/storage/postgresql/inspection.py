"""Everything that a database contains, as of one moment (:mod:`podstead.storage.inspection`).

A read-only transaction with one snapshot keeps the moment. It delays no writer. Rows that are
replaced meanwhile are kept by the database until the transaction ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import IsolationLevel, errors

from podstead.core.errors import StorageError
from podstead.storage.copying.files import write_records_file
from podstead.storage.copying.rows import CopyRefused
from podstead.storage.inspection import OnProgress
from podstead.storage.postgresql import comparisons, copying
from podstead.storage.postgresql.migrate import MIGRATIONS, run_steps_here
from podstead.storage.schema import Row, Table
from podstead.storage.statement_inspection import StatementInspection
from podstead.storage.steps import Begin, Result
from podstead.storage.tables import record_tables

_FETCHED_ROWS: Final = 500
"""How many rows of a result are in memory at a time; small bodies have up to 64 KiB."""
_OTHERS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = current_user AND pid <> pg_backend_pid()"
)
_INVALID_INDEXES: Final = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid"
    " WHERE relnamespace = current_schema()::regnamespace AND NOT indisvalid ORDER BY 1"
)
_CHECKSUM_FAILURES: Final = (
    "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"
)
_HAS_AMCHECK: Final = "SELECT 1 FROM pg_extension WHERE extname = 'amcheck'"
_INDEXES: Final = (
    "SELECT c.oid, c.relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'i'"
    " AND a.amname = 'btree' ORDER BY 2"
)


class PostgresInspection(StatementInspection):
    """Reads a database. With ``is_alone``, nobody may write to it meanwhile."""

    mark = "%s"
    sql = comparisons.COMPARISONS
    migrations = MIGRATIONS

    def __init__(self, conninfo: str, *, is_alone: bool = False) -> None:
        """Raises StorageError, and CopyRefused if ``is_alone`` and somebody else is connected."""
        self._names = count()
        with _trouble():
            self._connection = psycopg.connect(conninfo)
            try:
                self._connection.isolation_level = IsolationLevel.REPEATABLE_READ
                self._connection.read_only = not is_alone  # which would refuse the lock
                if is_alone:
                    self._keep_writers_out()
                # Before the snapshot, which the first query of the transaction takes.
                self.moment_ms = time.time_ns() // 1_000_000
                self._scalar("SELECT 1")
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        self._connection.close()

    def copy_to(self, target: str, on_progress: OnProgress) -> None:
        self.check_known()
        try:
            write_records_file(self, Path(target), on_progress)
        except OSError as error:
            raise StorageError(f"{target} could not be written: {error}") from error

    def rows(self, table: Table, *, after: Row | None = None) -> Iterator[Row]:
        with _trouble():
            yield from copying.select_rows(self._connection, table, after)

    def row_count(self, table: Table) -> int:
        with _trouble():
            return copying.count_rows(self._connection, table)

    def integrity_faults(self, *, is_quick: bool = False) -> Sequence[str]:
        with _trouble():
            found = [f"{name} is not a valid index" for (name,) in self._all(_INVALID_INDEXES)]
            if failures := self._scalar(_CHECKSUM_FAILURES):
                found.append(f"PostgreSQL has found {failures} pages with a wrong checksum")
            found += [
                f"A row of {path} is not stored with its pod"
                for (path,) in self._all(comparisons.WRONG_ROOTS)
            ]
            if not is_quick and self._all(_HAS_AMCHECK):
                found += self._damaged_indexes()
        return found

    # --- helpers ------------------------------------------------------------------------------

    def _keep_writers_out(self) -> None:
        if others := self._scalar(_OTHERS):
            raise CopyRefused(
                f"{others} other programs are connected to the database to be copied. Stop all "
                "servers that use it first."
            )
        # A lock takes no snapshot, so everything that was committed before it is in the copy.
        names = ", ".join(table.name for table in record_tables())
        self._connection.rollback()
        try:
            self._connection.execute(f"LOCK TABLE {names} IN SHARE MODE NOWAIT".encode())
        except errors.LockNotAvailable as error:
            raise CopyRefused(
                "Somebody is writing to the database to be copied. Stop all servers that use it "
                "first."
            ) from error

    def _damaged_indexes(self) -> list[str]:
        found = []
        for oid, name in self._all(_INDEXES):
            try:
                with self._connection.transaction():
                    self._connection.execute("SELECT bt_index_check(%s, true)", (oid,))
            except (errors.IndexCorrupted, errors.DataCorrupted) as error:
                found.append(f"{name}: {error}")
        return found

    def _scalar(self, query: str) -> Any:  # noqa: ANN401 - as the query has it
        row = self._connection.execute(query.encode()).fetchone()
        return None if row is None else row[0]

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.encode()).fetchall()

    def _run(self, begin: Begin[Result]) -> Result:
        with _trouble():
            return run_steps_here(self._connection, begin)

    def _rows(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        # A cursor of the database: results may be larger than memory. Several may be open.
        with (
            _trouble(),
            self._connection.cursor(f"inspection_{next(self._names)}") as cursor,
        ):
            cursor.itersize = _FETCHED_ROWS
            cursor.execute(query.encode(), values)
            yield from cursor


@contextmanager
def _trouble() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StorageError(f"The database could not be read or copied: {error}") from error
