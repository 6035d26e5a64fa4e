"""Facts about the server that persist between starts: a few named strings."""

from __future__ import annotations

import psycopg

from podstead.core.errors import StorageError
from podstead.storage.postgresql.connecting import connect


class PostgresFacts:
    """Reads and writes facts in a migrated database, with a connection for each call."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def read_fact(self, name: str) -> str | None:
        """The value of a fact, if there is one. Raises StorageError."""
        row = self._run("SELECT value FROM facts WHERE name = %s", (name,))
        return None if row is None else row[0]

    def write_fact(self, name: str, value: str) -> None:
        """Set a fact durably. Raises StorageError."""
        self._run(
            "INSERT INTO facts (name, value) VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING value",
            (name, value),
        )

    def _run(self, statement: str, values: tuple[str, ...]) -> tuple[str] | None:
        try:
            with connect(self._conninfo) as connection:
                row: tuple[str] | None = connection.execute(statement.encode(), values).fetchone()
        except psycopg.Error as error:
            raise StorageError("The facts of the server could not be read or written") from error
        return row
