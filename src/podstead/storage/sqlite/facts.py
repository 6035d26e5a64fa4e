"""Facts about the server that persist between starts: a few named strings."""

from __future__ import annotations

from pathlib import Path

import apsw

from podstead.core.errors import StorageError
from podstead.storage.sqlite.connection import WRITE_BUSY_S, BusyHandler, open_writer
from podstead.storage.sqlite.trouble import explained


class SqliteFacts:
    """Reads and writes facts in a migrated database, which each call opens and closes."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def read_fact(self, name: str) -> str | None:
        """The value of a fact, if there is one. Raises StorageError."""
        return self._run("SELECT value FROM facts WHERE name = ?", (name,))

    def write_fact(self, name: str, value: str) -> None:
        """Set a fact durably. Raises StorageError."""
        self._run(
            "INSERT INTO facts (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def _run(self, statement: str, values: tuple[str, ...]) -> str | None:
        try:
            connection = open_writer(self._database, BusyHandler(WRITE_BUSY_S))
            try:
                value: str | None = connection.execute(statement, values).get
            finally:
                connection.close()
        except apsw.Error as error:
            otherwise = f"The facts of the server in {self._database} could not be read or written"
            raise StorageError(explained(self._database, error, otherwise=otherwise)) from error
        return value
