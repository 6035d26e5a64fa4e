"""The rows of an SQLite database, read for a copy and written by one
(:mod:`podstead.storage.copying`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apsw

from podstead.core.errors import StorageError
from podstead.storage.copying.noted_target import ResumableTarget
from podstead.storage.copying.tables import OWN_ROWS
from podstead.storage.schema import Row, Table
from podstead.storage.sqlite.connection import WRITE_BUSY_S, BusyHandler, open_writer
from podstead.storage.tables import record_tables


def select_rows(connection: apsw.Connection, table: Table, after: Row | None) -> Iterator[Row]:
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


def count_rows(connection: apsw.Connection, table: Table) -> int:
    """How many rows there are. Raises apsw.Error."""
    count: int = connection.execute(f"SELECT count(*) FROM {table.name}").get  # noqa: S608
    return count


class SqliteTarget(ResumableTarget):
    """A migrated database that nobody else uses."""

    def __init__(self, database: Path) -> None:
        """Raises StorageError."""
        self._database = database
        with self._trouble():
            self._connection = open_writer(database, BusyHandler(WRITE_BUSY_S))

    def close(self) -> None:
        self._connection.close(force=True)

    def _trouble(self) -> AbstractContextManager[None]:
        return _trouble(self._database)

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

    def _add(self, table: Table, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(table.columns))
        self._connection.executemany(f"{table.insert} VALUES ({marks})", rows)

    def _tidy(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def _trouble(database: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise StorageError(f"{database} could not be written: {error}") from error


@contextmanager
def writers_locked_out(database: Path) -> Iterator[None]:
    """Let nobody write to the database. Raises StorageError."""
    with _trouble(database):
        connection = open_writer(database, BusyHandler(WRITE_BUSY_S))
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
    with _trouble(database):
        connection = open_writer(database, BusyHandler(WRITE_BUSY_S))
        try:
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        finally:
            connection.close()
