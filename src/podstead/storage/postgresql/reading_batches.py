"""Reads that wait for a connection share one: they are sent together, and take one round trip.

While a connection is free, a read takes it for itself. When all that reads of its storage may use
are busy, further reads wait, and the next connection takes up to :data:`MAX_READS` of them at once.
So the number of connections bounds how many round trips are under way, and not how many reads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from podstead.core.errors import Overloaded
from podstead.storage.postgresql.connecting import READ_LIMIT_S, ConnectionPool, pipelined
from podstead.storage.postgresql.rows import Row

MAX_READS: Final = 32
"""The maximum number of reads that share a round trip."""

MAX_WAITING: Final = 1024
"""The maximum number of reads of one storage that wait."""


@dataclass(frozen=True, slots=True)
class _Read:
    statement: bytes
    values: Sequence[Any]
    found: asyncio.Future[list[Row]]


@dataclass(slots=True)
class _Lane:
    """The reads of one storage."""

    running: int = 0
    """How many connections they are using or waiting for."""
    waiting: deque[_Read] = field(default_factory=deque)


class ReadingBatches:
    """Runs single statements on the connections of a pool. Used from one event loop only."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._lanes: dict[str, _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def fetch(self, statement: bytes, values: Sequence[Any], storage: str) -> list[Row]:
        """The rows of a SELECT about a storage, empty for none.

        Raises psycopg.Error, Overloaded, TimeoutError.
        """
        lane = self._lanes.get(storage)
        if lane is None:
            lane = self._lanes[storage] = _Lane()
        if lane.running >= self._pool.share_size:
            return await self._wait(lane, statement, values)
        lane.running += 1
        try:
            async with self._pool.connection(storage=storage) as connection:
                return await _one(connection, statement, values)
        finally:
            self._leave(lane, storage)

    async def _wait(self, lane: _Lane, statement: bytes, values: Sequence[Any]) -> list[Row]:
        if len(lane.waiting) >= MAX_WAITING:
            raise Overloaded("Too many requests for this storage are in progress")
        read = _Read(statement, values, asyncio.get_running_loop().create_future())
        lane.waiting.append(read)
        async with asyncio.timeout(READ_LIMIT_S):
            return await read.found

    def _leave(self, lane: _Lane, storage: str) -> None:
        """Give the place of a read that has ended to those that wait."""
        if lane.waiting:
            task = asyncio.create_task(self._run(lane, storage), name="podstead-reads")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        lane.running -= 1
        if not lane.running:
            del self._lanes[storage]

    async def _run(self, lane: _Lane, storage: str) -> None:
        reads: list[_Read] = []
        try:
            async with self._pool.connection(storage=storage) as connection:
                # Only now, so that what came while the connection was waited for goes along.
                reads = _taken(lane)
                await _together(connection, reads)
        except (psycopg.Error, OSError, TimeoutError, Overloaded) as error:
            for read in reads or _taken(lane):
                if not read.found.done():
                    read.found.set_exception(error)
        finally:
            for read in reads:
                read.found.cancel()  # has no effect on those that have a result
            self._leave(lane, storage)


def _taken(lane: _Lane) -> list[_Read]:
    """Up to a batch of those that still wait; a request that was given up waits no more."""
    taken: list[_Read] = []
    while lane.waiting and len(taken) < MAX_READS:
        read = lane.waiting.popleft()
        if not read.found.done():
            taken.append(read)
    return taken


async def _one(
    connection: psycopg.AsyncConnection[Row], statement: bytes, values: Sequence[Any]
) -> list[Row]:
    cursor = await connection.execute(statement, values, binary=True)
    return await cursor.fetchall()


async def _together(connection: psycopg.AsyncConnection[Row], reads: Sequence[_Read]) -> None:
    """Run reads in one round trip. An error of one would end all, so then each runs alone."""
    try:
        async with pipelined(connection):
            cursors = [
                await connection.execute(read.statement, read.values, binary=True) for read in reads
            ]
        results = [await cursor.fetchall() for cursor in cursors]
    except psycopg.Error:
        if connection.broken:
            raise
        for read in reads:
            try:
                rows = await _one(connection, read.statement, read.values)
            except psycopg.Error as error:
                if connection.broken:
                    raise
                _fail(read, error)
            else:
                _answer(read, rows)
        return
    for read, rows in zip(reads, results, strict=True):
        _answer(read, rows)


def _answer(read: _Read, rows: list[Row]) -> None:
    if not read.found.done():
        read.found.set_result(rows)


def _fail(read: _Read, error: Exception) -> None:
    if not read.found.done():
        read.found.set_exception(error)
