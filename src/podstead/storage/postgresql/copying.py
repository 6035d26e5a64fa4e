"""The rows of a PostgreSQL database, read for a copy and written by one
(:mod:`podstead.storage.copying`). Rows are streamed by COPY in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import psycopg
from psycopg import sql

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
from podstead.storage.postgresql.rows import root_of

SyncConnection = psycopg.Connection[Any]

_OWN_ROWS: Final = {
    "counters": f"name = '{CHANGES_COUNTER}'",
    "facts": f"name NOT IN {FACTS_OF_PLACE}",
}
"""What is copied of tables that are not copied as a whole."""
_NEW: Final = frozenset({"counters", "facts"})
"""The tables that have rows in an empty store."""
_STATE: Final = "SELECT value FROM facts WHERE name = %s"


def select_rows(
    connection: SyncConnection, table: RecordTable, after: RecordRow | None
) -> Iterator[RecordRow]:
    """The rows in the order of their keys, after that key. Raises psycopg.Error."""
    conditions = [_OWN_ROWS[table.name]] if table.name in _OWN_ROWS else []
    key = ", ".join(("root", *table.key) if table.has_root else table.key)
    if after is not None:
        values = (root_of(after[0]), *after) if table.has_root else after
        marks = ", ".join(sql.Literal(value).as_string(connection) for value in values)
        conditions.append(f"({key}) > ({marks})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    query = f"COPY (SELECT {table.names} FROM {table.name}{where} ORDER BY {key}) TO STDOUT"  # noqa: S608
    with connection.cursor() as cursor, cursor.copy(f"{query} (FORMAT BINARY)".encode()) as copy:
        copy.set_types([column.value for column in table.columns.values()])
        yield from copy.rows()


def count_rows(connection: SyncConnection, table: RecordTable) -> int:
    """About how many rows there are. Raises psycopg.Error."""
    row = connection.execute(f"SELECT count(*) FROM {table.name}".encode()).fetchone()  # noqa: S608
    return 0 if row is None else row[0]


class PostgresTarget:
    """Implements RowTarget on a migrated database that nobody else uses."""

    def __init__(self, conninfo: str) -> None:
        """Raises StorageError."""
        with _trouble():
            self._connection = psycopg.connect(conninfo, autocommit=True)

    def close(self) -> None:
        self._connection.close()

    def state(self) -> CopyState | None:
        with _trouble():
            row = self._connection.execute(_STATE, (COPYING_FACT,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=CopyState)

    def is_empty(self) -> bool:
        with _trouble():
            return not any(
                self._connection.execute(f"SELECT 1 FROM {name} LIMIT 1".encode()).fetchone()  # noqa: S608
                for name in ("facts", *_FILLED)
            )

    def begin(self, state: CopyState) -> None:
        with self._transaction():
            self._empty_tables()
            self._note(state)

    def put(
        self, table: RecordTable, rows: Iterable[RecordRow], before: CopyState, after: CopyState
    ) -> None:
        with self._transaction():
            self._check_state(before)
            self._add(table, rows)
            self._note(after)

    def finish(self, before: CopyState) -> None:
        with self._transaction():
            self._check_state(before)
            self._connection.execute("DELETE FROM facts WHERE name = %s", (COPYING_FACT,))
        with _trouble():
            self._connection.execute("ANALYZE")

    def _add(self, table: RecordTable, rows: Iterable[RecordRow]) -> None:
        types = [column.value for column in table.columns.values()]
        names = table.names
        if table.has_root:
            names, types = f"root, {names}", ["text", *types]
        statement = f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)"
        with (
            self._connection.cursor() as cursor,
            cursor.copy(statement.encode()) as copy,
        ):
            copy.set_types(types)
            for row in rows:
                copy.write_row((root_of(row[0]), *row) if table.has_root else row)

    def _empty_tables(self) -> None:
        self._connection.execute(f"TRUNCATE facts, {', '.join(_FILLED)}".encode())
        self._connection.execute("DELETE FROM counters WHERE name = %s", (CHANGES_COUNTER,))

    def _note(self, state: CopyState) -> None:
        self._connection.execute(
            "INSERT INTO facts (name, value) VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (COPYING_FACT, msgspec.json.encode(state).decode()),
        )

    def _check_state(self, expected: CopyState) -> None:
        row = self._connection.execute(f"{_STATE} FOR UPDATE", (COPYING_FACT,)).fetchone()
        if row is None or row[0] != msgspec.json.encode(expected).decode():
            raise CopyRefused("Another command copies to the same place.")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _trouble(), self._connection.transaction():
            yield


_FILLED: Final = [table.name for table in RECORD_TABLES if table.name not in _NEW]


@contextmanager
def _trouble() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StorageError(f"The copy could not be written to the database: {error}") from error
