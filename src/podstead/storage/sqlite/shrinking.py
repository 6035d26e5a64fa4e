"""How does the database's file become smaller again?

SQLite keeps freed pages for later. In a database that was created for it, a sweep moves what stands
at the end of the file into freed pages and cuts the end off, in bites (PRAGMA incremental_vacuum).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import apsw

from podstead.storage.sqlite.connection import BusyHandler, open_writer

logger = logging.getLogger("podstead.storage")

BATCH_PAGES: Final = 500
"""Pages that one transaction gives back at most."""

MIN_FREE_PAGES: Final = 256
"""Free pages that stay, since the next writes take some."""

MAX_CONVERTED_BYTES: Final = 1024 * 1024 * 1024
"""A larger database of an earlier version stays as it is: writing it anew would keep the start
waiting for minutes."""

_INCREMENTAL: Final = 2
_ENABLE_SHRINKING: Final = f"PRAGMA auto_vacuum = {_INCREMENTAL}"
_SPACE_FACTOR: Final = 3
_WAIT_S: Final = 10.0


def enable_shrinking(connection: apsw.Connection) -> None:
    """Have a database that is still empty be one that can shrink; any other is left alone. Raises
    apsw.Error."""
    if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        connection.execute(_ENABLE_SHRINKING)


def release_pages(connection: apsw.Connection) -> bool:
    """Give back a bite of the free pages, in a transaction; whether there may be more. Raises
    apsw.Error."""
    if connection.execute("PRAGMA auto_vacuum").get != _INCREMENTAL:
        return False
    free: int = connection.execute("PRAGMA freelist_count").get
    if free <= MIN_FREE_PAGES:
        return False
    connection.execute(
        f"PRAGMA incremental_vacuum({min(free - MIN_FREE_PAGES, BATCH_PAGES)})"
    ).fetchall()
    return True


def checkpoint(database: Path) -> None:
    """Bring the log into the file, which then gets its new size. Raises apsw.Error."""
    connection = open_writer(database, BusyHandler(0.0))
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        connection.close()


def convert_to_shrinkable(database: Path, *, free_bytes: int) -> None:
    """Write a database of an earlier version anew, if it is not large, so that it can shrink.

    To be called while no server runs on it. It stays as it is where that fails.
    """
    try:
        connection = open_writer(database, BusyHandler(_WAIT_S))
        try:
            _convert_to_shrinkable(connection, database, free_bytes)
        finally:
            connection.close()
    except apsw.Error as error:
        logger.warning("The database could not be written anew, and keeps its size: %s", error)


def _convert_to_shrinkable(connection: apsw.Connection, database: Path, free_bytes: int) -> None:
    if connection.execute("PRAGMA auto_vacuum").get == _INCREMENTAL:
        return
    size_bytes = database.stat().st_size
    if size_bytes > MAX_CONVERTED_BYTES or size_bytes * _SPACE_FACTOR > free_bytes:
        logger.info(
            "The database keeps its size when content is deleted, until it is written anew: stop "
            "the server and run 'PRAGMA auto_vacuum = 2; VACUUM;' on %s",
            database,
        )
        return
    connection.execute(_ENABLE_SHRINKING)
    connection.execute("VACUUM")
