"""The rows of an SQLite database, read for a copy and written by one
(:mod:`podstead.storage.copying`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw
import msgspec

from podstead.core.errors import StorageError
from podstead.storage.copying.rows import CopyRefused, CopyState
from podstead.storage.copying.tables import (
    CHANGES_COUNTER,
    COPYING_FACT,
    FACTS_OF_PLACE,
    RECORD_TABLES,
    RecordRow,
    RecordTable,
)
from podstead.storage.sqlite.connection import WRITE_BUSY_S, BusyHandler, open_writer

_OWN_ROWS: Final = {
    "counters": f"name = '{CHANGES_COUNTER}'",
    "facts": f"name NOT IN {FACTS_OF_PLACE}",
}
"""What is copied of tables that are not copied as a whole."""
_NEW: Final = frozenset({"counters", "facts"})
"""The tables that have rows in an empty store."""
_STATE: Final = "SELECT value FROM facts WHERE name = ?"


def select_rows(
    connection: apsw.Connection, table: RecordTable, after: RecordRow | None
) -> Iterator[RecordRow]:
    """The rows in the order of their keys, after that key. Raises apsw.Error."""
    conditions = [_OWN_ROWS[table.name]] if table.name in _OWN_ROWS else []
    key = ", ".join(table.key)
    if after is not None:
        conditions.append(f"({key}) > ({', '.join('?' * len(after))})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return connection.execute(
        f"SELECT {table.names} FROM {table.name}{where} ORDER BY {key}",  # noqa: S608 - our words
        after or (),
    )


def count_rows(connection: apsw.Connection, table: RecordTable) -> int:
    """How many rows there are. Raises apsw.Error."""
    count: int = connection.execute(f"SELECT count(*) FROM {table.name}").get  # noqa: S608
    return count


class SqliteTarget:
    """Implements RowTarget on a migrated database that nobody else uses."""

    def __init__(self, database: Path) -> None:
        """Raises StorageError."""
        with _trouble(database):
            self._connection = open_writer(database, BusyHandler(WRITE_BUSY_S))
        self._database = database

    def close(self) -> None:
        self._connection.close(force=True)

    def state(self) -> CopyState | None:
        with _trouble(self._database):
            value: str | None = self._connection.execute(_STATE, (COPYING_FACT,)).get
        return None if value is None else msgspec.json.decode(value, type=CopyState)

    def is_empty(self) -> bool:
        with _trouble(self._database):
            return (
                not any(
                    self._connection.execute(f"SELECT 1 FROM {table.name} LIMIT 1").get  # noqa: S608
                    for table in RECORD_TABLES
                    if table.name not in _NEW
                )
                and not self._connection.execute("SELECT 1 FROM facts LIMIT 1").get
            )

    def begin(self, state: CopyState) -> None:
        with self._transaction():
            self._empty_tables()
            self._note(state)

    def put(
        self, table: RecordTable, rows: Iterable[RecordRow], before: CopyState, after: CopyState
    ) -> None:
        marks = ", ".join("?" * len(table.columns))
        insert = f"INSERT INTO {table.name} ({table.names}) VALUES ({marks})"  # noqa: S608
        with self._transaction():
            self._check_state(before)
            self._connection.executemany(insert, rows)
            self._note(after)

    def finish(self, before: CopyState) -> None:
        with self._transaction():
            self._check_state(before)
            self._connection.execute("DELETE FROM facts WHERE name = ?", (COPYING_FACT,))
        with _trouble(self._database):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _empty_tables(self) -> None:
        for table in RECORD_TABLES:
            where = f" WHERE {_OWN_ROWS[table.name]}" if table.name == "counters" else ""
            self._connection.execute(f"DELETE FROM {table.name}{where}")  # noqa: S608

    def _note(self, state: CopyState) -> None:
        self._connection.execute(
            "INSERT INTO facts (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (COPYING_FACT, msgspec.json.encode(state).decode()),
        )

    def _check_state(self, expected: CopyState) -> None:
        noted = self._connection.execute(_STATE, (COPYING_FACT,)).get
        if noted != msgspec.json.encode(expected).decode():
            raise CopyRefused("Another command copies to the same place.")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _trouble(self._database):
            self._connection.transaction_mode = "IMMEDIATE"
            with self._connection:
                yield


@contextmanager
def _trouble(database: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise StorageError(f"{database} could not be written: {error}") from error


@contextmanager
def writers_kept_out(database: Path) -> Iterator[None]:
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
