"""Migrating a database to the current schema (``storage/migrations``)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from podstead.core.errors import StorageError
from podstead.storage.migrations import Migration, Migrations, read_migrations
from podstead.storage.sqlite.connection import BusyHandler, open_writer
from podstead.storage.sqlite.shrinking import enable_shrinking
from podstead.storage.sqlite.statements import run_steps
from podstead.storage.sqlite.trouble import explained

MIGRATION_WAIT_S = 60.0
"""How long to wait for another process that is migrating or writing."""

_RETRY_DELAY_S = 0.01


def migrations(steps: Sequence[Migration] | None = None) -> Migrations:
    """Those of this engine, or other ``steps``, for tests."""
    return Migrations(
        steps or read_migrations(),
        # Unlike the driver's own lookup of tables, a query sees what others have just committed.
        "SELECT 1 FROM sqlite_schema WHERE name = %s",
        lambda schema, number: schema.migrations[number - 1],
    )


def migrate(database: Path, *, steps: Sequence[Migration] | None = None) -> None:
    """Create the database if it is missing, and apply all missing migrations or none.

    Several processes may do this at once. Raises SchemaTooNew, StorageError.
    """
    deadline_s = time.monotonic() + MIGRATION_WAIT_S
    while True:
        try:
            return _migrate_once(database, migrations(steps))
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
            run_steps(connection, migrations().check_not_newer)
        finally:
            connection.close()
    except apsw.Error as error:
        raise StorageError(_failure(database, error)) from error


def _failure(database: Path, error: apsw.Error) -> str:
    return explained(database, error, otherwise=f"{database} could not be brought up to date")


def _migrate_once(database: Path, missing: Migrations) -> None:
    connection = open_writer(database, BusyHandler(MIGRATION_WAIT_S), create=True)
    try:
        enable_shrinking(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.transaction_mode = "IMMEDIATE"
        with connection:
            run_steps(connection, missing.apply)
    finally:
        connection.close()
