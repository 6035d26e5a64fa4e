"""The parts of a store while it is open: connections, what uses them, and the clock of the
database.

That clock is common to all nodes. It dates what is stored, so that dates of two nodes can be
compared. Sessions, tokens and proofs expire by the clock of each node.
"""

import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import psycopg
import psycopg_pool
from psycopg_pool import AsyncConnectionPool

from podstead.core.background import Background
from podstead.core.errors import StorageError
from podstead.storage.blobs.body_store import BodyStore
from podstead.storage.blobs.staging import BlobLedger, BodyStaging
from podstead.storage.postgresql import connecting, maintenance
from podstead.storage.postgresql.change_listening import ChangeListening
from podstead.storage.postgresql.database import MIGRATIONS
from podstead.storage.postgresql.ephemeral import Ephemeral
from podstead.storage.postgresql.prefetch import CachedRegistries
from podstead.storage.postgresql.reads import Reader
from podstead.storage.postgresql.writer import Writer, run_steps
from podstead.storage.removal_lock import removals_allowed
from podstead.storage.steps import Begin, Result

logger = logging.getLogger("podstead.storage")

_COMPARED_EVERY_S: Final = 60
_MAX_TRIP_S: Final = 1.0
"""An answer that takes longer says too little."""
_IGNORED_S: Final = 1.0
"""Clocks that differ by less are taken for the same: dates of HTTP have whole seconds."""

_TIME: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"


class SharedClock:
    """How far the clock of the database is ahead of this machine's, compared now and then."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool
        self._comparing = Background(
            self._compare_again,
            logger,
            "The clocks could not be compared",
            every_s=_COMPARED_EVERY_S,
        )
        self.ahead_ms = 0

    async def start(self) -> None:
        """Compare, and go on comparing. Raises psycopg.Error."""
        await self._compare()
        self._comparing.start(at_once=False)

    async def close(self) -> None:
        await self._comparing.stop()

    async def _compare_again(self) -> None:
        with contextlib.suppress(psycopg.Error, OSError):  # until the next time
            await self._compare()

    async def _compare(self) -> None:
        async with self._pool.connection() as connection:
            before_s = time.time()
            row = await (await connection.execute(_TIME)).fetchone()
            after_s = time.time()
        if row is None or not 0 <= after_s - before_s <= _MAX_TRIP_S:
            return
        ahead_s = row[0] - (before_s + after_s) / 2
        self.ahead_ms = round(ahead_s * 1000) if abs(ahead_s) >= _IGNORED_S else 0


READ_CONNECTIONS: Final = 4
"""The connections of a worker for reads and short-lived records. Requests wait for one in turn."""


@dataclass(frozen=True, slots=True)
class OpenParts:
    """The parts of a store while it is open."""

    reads: AsyncConnectionPool
    writes: AsyncConnectionPool
    reader: Reader
    registries: CachedRegistries
    ephemeral: Ephemeral
    writer: Writer
    blobs: BodyStore
    staging: BodyStaging
    listening: ChangeListening
    clock: SharedClock

    def notify(self) -> None:
        self.listening.wake()

    async def close(self) -> None:
        """Finish what is waiting, and close all connections."""
        # First, because it uses the writer, and waiting writes need their blobs and notifications.
        await self.staging.dropped.close()
        await self.writer.close()
        await self.listening.close()
        await self.clock.close()
        await self.reader.close()
        await self.reads.close()
        await self.writes.close()
        self.blobs.close()


async def open_parts(
    conninfo: str,
    *,
    for_reading: bool,
    new_bodies: Callable[[], BodyStore],
    inline_body_bytes: int,
    max_waiting: int,
    removal_lock: Path,
) -> OpenParts:
    """Connect to a migrated database, ``for_reading`` with the first statements only. Raises
    StorageError."""
    reads = connecting.ConnectionPool(
        conninfo, READ_CONNECTIONS, limit_s=connecting.READ_LIMIT_S, is_lazy=for_reading
    )
    writes = connecting.ConnectionPool(
        conninfo, 1, limit_s=connecting.WRITE_LIMIT_S, is_lazy=for_reading
    )
    clock = SharedClock(reads)
    try:
        await reads.open(wait=True, timeout=connecting.CONNECTION_WAIT_S)
        await writes.open(wait=True, timeout=connecting.CONNECTION_WAIT_S)
        async with reads.connection() as connection:
            await run_steps(connection, MIGRATIONS.check_current)
        await clock.start()
    except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
        await reads.close()
        await writes.close()
        raise StorageError("The database could not be opened") from error
    listening = ChangeListening(conninfo)
    writer = Writer(writes, others=reads, max_waiting=max_waiting, on_changes=listening.wake)
    blobs = new_bodies()
    reader = Reader(reads)

    def step(begin: Begin[Result]) -> Awaitable[Result]:
        return writer.run(partial(run_steps, begin=begin))

    @asynccontextmanager
    async def turn() -> AsyncIterator[bool]:
        async with removals_allowed(removal_lock) as is_allowed:
            yield is_allowed and await writer.run(maintenance.allows_removals)

    return OpenParts(
        reads,
        writes,
        reader,
        CachedRegistries(reader),
        Ephemeral(reads),
        writer,
        blobs,
        BodyStaging(
            blobs,
            BlobLedger(step, maintenance.PostgresMaintenance()),
            inline_body_bytes=inline_body_bytes,
            removals_allowed=turn,
        ),
        listening,
        clock,
    )
