"""Migrating a database to the current schema.

The table ``schema_version`` contains the number of the last migration that was applied. All missing
migrations are applied in one transaction, which holds an advisory lock: nodes that start together
take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from podstead.core.errors import SchemaTooNew, StorageError
from podstead.storage.migrations import read_migrations
from podstead.storage.postgresql.connecting import connect, sharing_connection

MIGRATION_LOCK: Final = 0x706F_6473_7465_6164
"""The advisory lock of migrations: "podstead" in ASCII."""

PREPARATION_LOCK: Final = 0x706F_6473_7072_6570
"""The advisory lock of nodes that start: "podsprep" in ASCII."""

_MIGRATIONS: Final = read_migrations("podstead.storage.postgresql.migrations")


def migrate(conninfo: str) -> None:
    """Apply all missing migrations or none. Raises SchemaTooNew, StorageError."""
    try:
        with connect(conninfo) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            _apply_missing(connection)
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
    if not is_migrated(conninfo):
        return
    try:
        with connect(conninfo) as connection:
            row = connection.execute("SELECT version FROM schema_version").fetchone()
    except psycopg.Error as error:
        raise StorageError(f"The database could not be opened: {error}") from error
    version, newest = 0 if row is None else row[0], _MIGRATIONS[-1].number
    if version > newest:
        raise schema_too_new(version, newest)


def is_migrated(conninfo: str) -> bool:
    """Whether the database has been migrated at least once. Raises StorageError."""
    try:
        with connect(conninfo) as connection:
            row = connection.execute("SELECT to_regclass('schema_version') IS NOT NULL").fetchone()
    except psycopg.Error as error:
        raise StorageError(f"The database could not be opened: {error}") from error
    return row is not None and bool(row[0])


def _apply_missing(connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
    row = connection.execute("SELECT version FROM schema_version").fetchone()
    version = 0
    if row is None:
        connection.execute("INSERT INTO schema_version (version) VALUES (0)")
    else:
        (version,) = row
    newest = _MIGRATIONS[-1].number
    if version > newest:
        raise schema_too_new(version, newest)
    for step in _MIGRATIONS:
        if step.number > version:
            connection.execute(step.sql.encode())
    connection.execute("UPDATE schema_version SET version = %s", (newest,))


def schema_too_new(version: int, newest: int) -> SchemaTooNew:
    """The error for a database that a newer server has migrated."""
    return SchemaTooNew(
        f"The database has schema {version}, and this version of podstead knows schemas up to"
        f" {newest}. Use the newer version again, or another database."
    )


def check_schema(version: int) -> None:
    """Raise SchemaTooNew or StorageError unless the schema of that number is current."""
    newest = _MIGRATIONS[-1].number
    if version > newest:
        raise schema_too_new(version, newest)
    if version < newest:
        raise StorageError(f"The database has schema {version}; migrate it to {newest} first")
