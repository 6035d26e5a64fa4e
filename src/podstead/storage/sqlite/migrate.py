"""Migrating a database to the current schema.

The table ``schema_version`` contains the number of the last migration that was applied (see
``storage/migrations``). All missing migrations are applied in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from podstead.core.errors import SchemaTooNew, StorageError
from podstead.storage.migrations import Migration, read_migrations
from podstead.storage.sqlite.connection import BusyHandler, open_writer
from podstead.storage.sqlite.shrinking import enable_shrinking
from podstead.storage.sqlite.trouble import explained

MIGRATION_WAIT_S = 60.0
"""How long to wait for another process that is migrating or writing."""

_RETRY_DELAY_S = 0.01


def migrate(database: Path, *, migrations: Sequence[Migration] | None = None) -> None:
    """Create the database if it is missing, and apply all missing migrations or none.

    Several processes may do this at once. Raises SchemaTooNew, StorageError.
    """
    steps = read_migrations() if migrations is None else migrations
    deadline_s = time.monotonic() + MIGRATION_WAIT_S
    while True:
        try:
            return _migrate_once(database, steps)
        except apsw.Error as error:
            # The busy handler does not cover the switch to write-ahead logging.
            if not isinstance(error, apsw.BusyError) or time.monotonic() > deadline_s:
                raise StorageError(_failure(database, error)) from error
            time.sleep(_RETRY_DELAY_S)


def check_not_newer(database: Path) -> None:
    """Raise SchemaTooNew if a newer version has written the database, which may be in use. Raises
    StorageError."""
    try:
        connection = open_writer(database, BusyHandler(MIGRATION_WAIT_S))
        try:
            version, newest = read_schema_version(connection), read_migrations()[-1].number
        finally:
            connection.close()
    except apsw.Error as error:
        raise StorageError(_failure(database, error)) from error
    if version > newest:
        raise _too_new(version, newest)


def check_schema(version: int) -> None:
    """Raise SchemaTooNew or StorageError unless the schema of that number is current."""
    newest = read_migrations()[-1].number
    if version > newest:
        raise _too_new(version, newest)
    if version < newest:
        raise StorageError(f"The database has schema {version}; migrate it to {newest} first")


def _failure(database: Path, error: apsw.Error) -> str:
    return explained(database, error, otherwise=f"{database} could not be brought up to date")


def _migrate_once(database: Path, steps: Sequence[Migration]) -> None:
    connection = open_writer(database, BusyHandler(MIGRATION_WAIT_S), create=True)
    try:
        enable_shrinking(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.transaction_mode = "IMMEDIATE"
        with connection:
            _apply_missing(connection, steps)
    finally:
        connection.close()


def _apply_missing(connection: apsw.Connection, steps: Sequence[Migration]) -> None:
    version, newest = read_schema_version(connection), steps[-1].number
    if version > newest:
        raise _too_new(version, newest)
    if version == 0:
        connection.execute(
            "CREATE TABLE schema_version (version BIGINT NOT NULL);"
            "INSERT INTO schema_version (version) VALUES (0)"
        )
    if version == newest:
        return  # without a write, which would need disk space
    for step in steps:
        if step.number > version:
            connection.execute(step.sql)
    connection.execute("UPDATE schema_version SET version = ?", (newest,))


def read_schema_version(connection: apsw.Connection) -> int:
    """The number of the last migration applied; 0 for an empty database."""
    # Unlike the driver's own lookup of tables, a query sees what others have just committed.
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'").get:
        return 0
    version: int = connection.execute("SELECT version FROM schema_version").get
    return version


def _too_new(version: int, newest: int) -> SchemaTooNew:
    return SchemaTooNew(
        f"The database was written by a newer version of Podstead (schema {version}; this version"
        f" knows {newest}). Install that version, or use another data root"
    )
