"""Migrating a database to the current schema (``storage/migrations``).

A migration holds an advisory lock: nodes that start together take turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from podstead.core.errors import StorageError
from podstead.storage.migrations import Migrations, read_migrations
from podstead.storage.postgresql.connecting import connect, sharing_connection
from podstead.storage.schema import Schema
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
