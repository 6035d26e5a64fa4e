"""The rows of a PostgreSQL database, read for a copy and written by one
(:mod:`podstead.storage.copying`). Rows are streamed by COPY in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from podstead.core.errors import StorageError
from podstead.storage.copying.noted_target import ResumableTarget
from podstead.storage.copying.tables import CHANGES_COUNTER, OWN_ROWS, filled_tables
from podstead.storage.schema import Row, Table
from podstead.storage.tables import root_of

SyncConnection = psycopg.Connection[Any]


def select_rows(connection: SyncConnection, table: Table, after: Row | None) -> Iterator[Row]:
    """The rows in the order of their keys, after that key. Raises psycopg.Error."""
    conditions = [OWN_ROWS[table.name]] if table.name in OWN_ROWS else []
    key = ", ".join(("root", *table.key) if table.has_root else table.key)
    if after is not None:
        values = (root_of(after[table.place_of_path]), *after) if table.has_root else after
        marks = ", ".join(sql.Literal(value).as_string(connection) for value in values)
        conditions.append(f"({key}) > ({marks})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    query = f"COPY (SELECT {table.names} FROM {table.name}{where} ORDER BY {key}) TO STDOUT"  # noqa: S608
    with connection.cursor() as cursor, cursor.copy(f"{query} (FORMAT BINARY)".encode()) as copy:
        copy.set_types([column.value for column in table.columns.values()])
        yield from copy.rows()


def count_rows(connection: SyncConnection, table: Table) -> int:
    """About how many rows there are. Raises psycopg.Error."""
    row = connection.execute(f"SELECT count(*) FROM {table.name}".encode()).fetchone()  # noqa: S608
    return 0 if row is None else row[0]


class PostgresTarget(ResumableTarget):
    """A migrated database that nobody else uses."""

    lock_rows = " FOR UPDATE"

    def __init__(self, conninfo: str) -> None:
        """Raises StorageError."""
        with self._trouble():
            self._connection = psycopg.connect(conninfo, autocommit=True)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise StorageError(f"The copy could not be written to the database: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._trouble(), self._connection.transaction():
            yield

    def _fetch(self, statement: str, *values: str) -> list[Row]:
        cursor = self._connection.execute(statement.encode(), values)
        return [] if cursor.description is None else cursor.fetchall()

    def _empty_tables(self) -> None:
        self._connection.execute(f"TRUNCATE facts, {', '.join(filled_tables())}".encode())
        self._connection.execute("DELETE FROM counters WHERE name = %s", (CHANGES_COUNTER,))

    def _add(self, table: Table, rows: Iterable[Row]) -> None:
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
                if table.has_root:
                    copy.write_row((root_of(row[table.place_of_path]), *row))
                else:
                    copy.write_row(row)

    def _tidy(self) -> None:
        self._connection.execute("ANALYZE")
