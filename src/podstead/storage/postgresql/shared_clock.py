"""The clock that all nodes have in common: that of the database.

It dates what is stored, so that dates of two nodes can be compared. Sessions, tokens and proofs
expire by the clock of each node.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

import psycopg
from psycopg_pool import AsyncConnectionPool

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
        self._task: asyncio.Task[None] | None = None
        self.ahead_ms = 0

    async def start(self) -> None:
        """Compare, and go on comparing. Raises psycopg.Error."""
        await self._compare()
        self._task = asyncio.create_task(self._run(), name="podstead-clock")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_COMPARED_EVERY_S)
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
