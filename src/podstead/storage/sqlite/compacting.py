"""Giving space of the database file back to the disk.

SQLite keeps freed pages for reuse. In a database that was created with incremental auto-vacuum, a
sweep moves pages from the end of the file into freed ones and truncates the file, in batches
(PRAGMA incremental_vacuum). :func:`compact_database` gives back as much as possible, on demand.
"""

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Final

import apsw

from podstead.core.errors import StorageError
from podstead.storage.protocol import Compaction
from podstead.storage.sqlite.connection import WRITE_BUSY_S, BusyHandler, open_writer
from podstead.storage.sqlite.writer import Writer

logger = logging.getLogger("podstead.storage")

BATCH_PAGES: Final = 500
"""The maximum number of pages that one transaction releases."""

SMALL_BATCH_PAGES: Final = 64
"""The same on a full disk, where there is little space for the log."""

MIN_FREE_PAGES: Final = 256
"""The free pages to keep for the next writes."""

MAX_CONVERTED_BYTES: Final = 1024 * 1024 * 1024
"""A larger database of an earlier version is not converted, which would delay the start by
minutes."""

_INCREMENTAL: Final = 2
ENABLE_SHRINKING: Final = f"PRAGMA auto_vacuum = {_INCREMENTAL}"
"""Takes effect in an empty database, or when it is rewritten."""
SPACE_FACTOR: Final = 3
"""Rewriting needs so many times the size of the database: a second copy, and its log."""
_WAIT_S: Final = 10.0


def enable_shrinking(connection: apsw.Connection) -> None:
    """Enable incremental auto-vacuum in a database that is still empty. Raises apsw.Error."""
    if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        connection.execute(ENABLE_SHRINKING)


def is_shrinkable(connection: apsw.Connection) -> bool:
    """Whether free pages can be released without rewriting the database. Raises apsw.Error."""
    mode: int = connection.execute("PRAGMA auto_vacuum").get
    return mode == _INCREMENTAL


def release_pages(
    connection: apsw.Connection,
    *,
    keep_pages: int = MIN_FREE_PAGES,
    batch_pages: int = BATCH_PAGES,
) -> bool:
    """Release a batch of free pages, in a transaction; whether there may be more.

    Raises apsw.Error.
    """
    if not is_shrinkable(connection):
        return False
    free: int = connection.execute("PRAGMA freelist_count").get
    if free <= keep_pages:
        return False
    connection.execute(
        f"PRAGMA incremental_vacuum({min(free - keep_pages, batch_pages)})"
    ).fetchall()
    return True


def checkpoint(database: Path) -> None:
    """Checkpoint the log, which truncates the database file to its new size. Raises apsw.Error."""
    connection = open_writer(database, BusyHandler(0.0))
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        connection.close()


def convert_to_shrinkable(database: Path, *, free_bytes: int) -> None:
    """Convert a database of an earlier version, unless it is large, so that it can shrink.

    Must be called while no server uses the database. If it fails, the database is unchanged.
    """
    try:
        connection = open_writer(database, BusyHandler(_WAIT_S))
        try:
            _convert_to_shrinkable(connection, database, free_bytes)
        finally:
            connection.close()
    except apsw.Error as error:
        logger.warning("The database could not be rewritten and keeps its size: %s", error)


def _convert_to_shrinkable(connection: apsw.Connection, database: Path, free_bytes: int) -> None:
    if is_shrinkable(connection):
        return
    size_bytes = database.stat().st_size
    if size_bytes > MAX_CONVERTED_BYTES or size_bytes * SPACE_FACTOR > free_bytes:
        logger.info(
            "The database file does not shrink when content is deleted. To change that, stop the "
            "server and run 'PRAGMA auto_vacuum = 2; VACUUM;' on %s",
            database,
        )
        return
    connection.execute(ENABLE_SHRINKING)
    connection.execute("VACUUM")


async def compact_database(
    writer: Writer, database: Path, *, is_alone: bool, free_bytes: int
) -> Compaction:
    """Rewrite the database if no other process uses it, and else release all free pages.

    Raises StorageError, and has changed nothing but released pages then.
    """
    while await writer.run(partial(release_pages, keep_pages=0)):
        pass
    try:
        if is_alone and await asyncio.to_thread(_needed_bytes, database) <= free_bytes:
            await asyncio.to_thread(_rewrite, database)
            return Compaction.REWRITTEN
        can_shrink = await asyncio.to_thread(_release, database)
    except (apsw.Error, OSError) as error:
        raise StorageError("The database could not be made smaller") from error
    if is_alone:
        return Compaction.NEEDS_SPACE
    return Compaction.SHRUNK if can_shrink else Compaction.NEEDS_TO_BE_ALONE


def _needed_bytes(database: Path) -> int:
    """Raises apsw.Error."""
    connection = open_writer(database, BusyHandler(WRITE_BUSY_S))
    try:
        # Not the size of the file: much of it may still be in the log.
        pages: int = connection.execute("PRAGMA page_count").get
        page_bytes: int = connection.execute("PRAGMA page_size").get
    finally:
        connection.close()
    return pages * page_bytes * SPACE_FACTOR


def _rewrite(database: Path) -> None:
    connection = open_writer(database, BusyHandler(WRITE_BUSY_S))
    try:
        connection.execute(ENABLE_SHRINKING)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()


def _release(database: Path) -> bool:
    """Whether the database shrinks without being rewritten."""
    checkpoint(database)
    connection = open_writer(database, BusyHandler(WRITE_BUSY_S))
    try:
        return is_shrinkable(connection)
    finally:
        connection.close()
