"""Giving back space of the database on demand; with each sweep, ``shrinking.py`` does a little."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import apsw

from podstead.core.errors import StorageError
from podstead.storage.compaction import Compaction
from podstead.storage.sqlite.connection import WRITE_BUSY_S, BusyHandler, open_writer
from podstead.storage.sqlite.shrinking import (
    ENABLE_SHRINKING,
    SPACE_FACTOR,
    checkpoint,
    is_shrinkable,
    release_pages,
)
from podstead.storage.sqlite.writer import Writer


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
