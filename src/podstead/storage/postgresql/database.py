"""The database before a store is opened on it: migrations, facts, and private keys.

A migration holds an advisory lock: nodes that start together take turns. Keys are stored as they
are: whoever can read their table can sign as the server, as whoever can read the files of a data
root can. Access to it can be restricted, and ``pg_dump`` can leave it out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from podstead.core.errors import StorageError
from podstead.storage.migrations import Migrations, read_migrations
from podstead.storage.postgresql.connecting import connect, sharing_connection, storage_error
from podstead.storage.schema import Row, Schema
from podstead.storage.steps import Begin, Result

MIGRATION_LOCK: Final = 0x706F_6473_7465_6164
"""The advisory lock of migrations: "podstead" in ASCII."""

PREPARATION_LOCK: Final = 0x706F_6473_7072_6570
"""The advisory lock of nodes that start: "podsprep" in ASCII."""


def _feature_sql(schema: Schema, number: int) -> str:
    own = schema.postgresql.get(number)
    if own is not None:
        return own
    # Texts compare by bytes, as in SQLite.
    text = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', schema.migrations[number - 1])
    return re.sub(r"\bBLOB\b", "BYTEA", text).replace(" WITHOUT ROWID", "")


MIGRATIONS: Final = Migrations(
    read_migrations("podstead.storage.postgresql.migrations"),
    "SELECT 1 WHERE to_regclass(%s) IS NOT NULL",
    _feature_sql,
)


def migrate(conninfo: str) -> None:
    """Apply all missing migrations or none. Raises SchemaTooNew, StorageError."""
    try:
        with connect(conninfo) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            run_steps_here(connection, MIGRATIONS.apply)
    except psycopg.Error as error:
        raise StorageError(f"The database could not be brought up to date: {error}") from error


@contextmanager
def preparing(conninfo: str) -> Iterator[None]:
    """Migrate, and keep other nodes from preparing the database for their start.

    What is prepared becomes valid together at the end. Raises SchemaTooNew, StorageError.
    """
    try:
        with sharing_connection(conninfo):
            migrate(conninfo)
            # A lock of a transaction, which poolers do not hand to another client.
            with connect(conninfo) as connection:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (PREPARATION_LOCK,))
                yield
    except psycopg.Error as error:
        raise StorageError(f"The database could not be prepared: {error}") from error


def check_not_newer(conninfo: str) -> None:
    """Raise SchemaTooNew if a newer version has migrated the database, which may be in use. Raises
    StorageError."""
    _run(conninfo, MIGRATIONS.check_not_newer)


def is_migrated(conninfo: str) -> bool:
    """Whether the database has been migrated at least once. Raises StorageError."""
    return _run(conninfo, MIGRATIONS.number) > 0


def _run(conninfo: str, begin: Begin[Result]) -> Result:
    try:
        with connect(conninfo) as connection:
            return run_steps_here(connection, begin)
    except psycopg.Error as error:
        raise StorageError(f"The database could not be opened: {error}") from error


def run_steps_here(connection: psycopg.Connection, begin: Begin[Result]) -> Result:
    """Run the statements of some steps, for commands and at the start. Raises psycopg.Error."""
    steps = begin()
    try:
        text, values, returns_rows = next(steps)
        while True:
            cursor = connection.execute(text.encode(), values or None)
            text, values, returns_rows = steps.send(cursor.fetchall() if returns_rows else [])
    except StopIteration as end:
        result: Result = end.value
        return result


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


KEYS_LOCK: Final = 0x706F_6473_6B65_7973
"""The advisory lock of those who add and remove keys: "podskeys" in ASCII."""

_BELOW: Final = "starts_with(name, %s)"


class PostgresKeys:
    """Implements KeyStorage in a migrated database, with a connection for each call."""

    is_remote = True

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def where(self, name: str) -> str:
        return f"{name} in the database"

    def read(self, name: str) -> bytes | None:
        found = self._run("SELECT content FROM private_keys WHERE name = %s", (name,))
        return bytes(found[0][0]) if found else None

    def read_folder(self, folder: str) -> Mapping[str, bytes]:
        select = f"SELECT name, content FROM private_keys WHERE {_BELOW} ORDER BY name"  # noqa: S608
        found = self._run(select, (f"{folder}/",))
        return {name: bytes(content) for name, content in found}

    def has_folder(self, folder: str) -> bool:
        return bool(self.mark(folder))

    def mark(self, folder: str) -> object:
        # A key never changes under its name.
        select = f"SELECT name FROM private_keys WHERE {_BELOW} ORDER BY name"  # noqa: S608
        return self._run(select, (f"{folder}/",))

    def add(self, name: str, content: bytes) -> None:
        self._run(
            "INSERT INTO private_keys (name, content) VALUES (%s, %s)"
            " ON CONFLICT (name) DO NOTHING RETURNING 1",
            (name, content),
        )

    def remove(self, name: str) -> bool:
        return bool(self._run("DELETE FROM private_keys WHERE name = %s RETURNING 1", (name,)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Others wait for the lock, which ends with a transaction at the latest."""
        with _trouble(), connect(self._conninfo) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (KEYS_LOCK,))
            yield

    def _run(self, statement: str, values: Sequence[Any]) -> list[Row]:
        with _trouble(), connect(self._conninfo) as connection:
            return connection.execute(statement.encode(), values).fetchall()


@contextmanager
def _trouble() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise storage_error(
            error, "The keys in the database could not be read or stored"
        ) from error
