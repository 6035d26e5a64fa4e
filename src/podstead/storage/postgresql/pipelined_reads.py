"""Reads are sent at once, however many are under way on their connection.

A connection in pipeline mode (libpq, "Pipeline Mode") takes further statements while earlier ones
are being answered. So a read never waits for a connection, and reads share round trips. Those that
begin in the same turn of the event loop are one transaction, which is answered as a whole. If one
fails, the database leaves out the others after it, and those are sent again.

This calls libpq directly, by the driver's :mod:`psycopg.pq`. A cursor of the driver takes several
times the processor time of what the database does for a read, and cannot be used by many tasks at
the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import psycopg
import psycopg_pool
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result

from podstead.core.background import cancel_and_wait
from podstead.core.errors import Overloaded
from podstead.storage.postgresql.connecting import CONNECTION_WAIT_S, ConnectionPool
from podstead.storage.schema import Row

MAX_UNDER_WAY: Final = 64
"""The maximum number of reads of one storage that are sent and not answered; others of it wait."""

MAX_WAITING: Final = 1024
"""The maximum number of reads of one storage that wait."""

_LOOK_S: Final = 0.2
"""How often a connection is looked at while reads are under way."""


@dataclass(slots=True, eq=False)
class _Read:
    statement: bytes
    values: Sequence[Any]
    queue: _Queue
    found: asyncio.Future[list[Row]]
    sent_s: float = 0.0
    prepares: _Prepared | None = None
    """What the database is to prepare for it, if its statement is new on the connection."""
    has_lacked_statement: bool = False
    """Whether it was sent again because its statement was not prepared."""
    rows: list[Row] = field(default_factory=list)
    error: Exception | None = None

    def end(self) -> None:
        """Tell whoever waits; a request that was given up waits no more."""
        if self.found.done():
            return
        if self.error is None:
            self.found.set_result(self.rows)
        else:
            self.found.set_exception(self.error)


@dataclass(slots=True, eq=False)
class _Queue:
    """The reads of one storage."""

    storage: str
    pipeline: _Pipeline
    under_way: int = 0
    waiting: deque[_Read] = field(default_factory=deque)


class PipelinedReads:
    """Runs single statements on some connections of a pool. Used from one event loop only."""

    def __init__(self, pool: ConnectionPool, *, connections: int) -> None:
        self._pipelines = [_Pipeline(pool, self._ended, self._broken) for _ in range(connections)]
        self._queues: dict[str, _Queue] = {}

    async def fetch(self, statement: bytes, values: Sequence[Any], storage: str) -> list[Row]:
        """The rows of a SELECT about a storage, empty for none.

        Raises psycopg.Error, Overloaded, TimeoutError.
        """
        queue = self._queues.get(storage)
        if queue is None:
            # All reads of a storage use one connection, so if they hang, others do not.
            pipeline = min(self._pipelines, key=_Pipeline.load)
            queue = self._queues[storage] = _Queue(storage, pipeline)
        found: asyncio.Future[list[Row]] = asyncio.get_running_loop().create_future()
        read = _Read(statement, values, queue, found)
        if queue.under_way < MAX_UNDER_WAY:
            queue.under_way += 1
            queue.pipeline.begin(read)
        elif len(queue.waiting) < MAX_WAITING:
            queue.waiting.append(read)
        else:
            raise Overloaded("Too many requests for this storage are in progress")
        return await found

    async def close(self) -> None:
        """Give the connections back; reads that are under way fail."""
        for pipeline in self._pipelines:
            await pipeline.close()

    def _ended(self, queue: _Queue) -> None:
        """Begin the next read of a storage in place of one that has ended."""
        while queue.waiting:
            read = queue.waiting.popleft()
            if not read.found.done():
                queue.pipeline.begin(read)
                return
        queue.under_way -= 1
        if not queue.under_way:
            del self._queues[queue.storage]

    def _broken(self, pipeline: _Pipeline, error: Exception) -> None:
        """Let those fail that wait for reads that have failed."""
        for queue in self._queues.values():
            if queue.pipeline is pipeline:
                while queue.waiting:
                    read = queue.waiting.popleft()
                    read.error = error
                    read.end()


_Prepared = tuple[bytes, tuple[int, ...]]
"""A statement, and the types of its values."""


class _Pipeline:
    """One connection in pipeline mode, which is replaced when it is lost."""

    def __init__(
        self,
        pool: ConnectionPool,
        ended: Callable[[_Queue], None],
        broken: Callable[[_Pipeline, Exception], None],
    ) -> None:
        self._pool = pool
        self._ended = ended
        self._broken = broken
        self._current: _PipelineConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._unsent: deque[_Read] = deque()
        """Those that wait for the connection."""
        self._returning: set[asyncio.Task[None]] = set()

    def load(self) -> int:
        """How many reads are under way."""
        return len(self._unsent) + (0 if self._current is None else len(self._current.sent))

    def begin(self, read: _Read) -> None:
        """Send a read, if necessary when there is a connection."""
        if self._current is not None:
            self._current.send(read)
            return
        self._unsent.append(read)
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect(), name="podstead-reads")

    async def close(self) -> None:
        if self._connecting is not None:
            await cancel_and_wait([self._connecting])
        closed = psycopg_pool.PoolClosed("The store was closed")
        self._fail(self._unsent, closed)
        if self._current is not None:
            self._lost(self._current, closed)
        await asyncio.gather(*self._returning, return_exceptions=True)

    async def _connect(self) -> None:
        try:
            connection = await self._pool.getconn(CONNECTION_WAIT_S)
            try:
                self._current = _PipelineConnection(
                    connection, self._pool.limit_s, self._ended, self._lost
                )
            except psycopg.Error:
                await self._give_back(connection, is_hanging=False)
                raise
        except Exception as error:  # noqa: BLE001 - whoever waits must be told
            self._fail(self._unsent, error)
        finally:
            self._connecting = None
        while self._unsent and self._current is not None:
            self._current.send(self._unsent.popleft())

    def _lost(self, opened: _PipelineConnection, error: Exception) -> None:
        """Let all reads fail that are under way, and get another connection for the next one."""
        if self._current is not opened:
            return
        self._current = None
        opened.leave()
        is_hanging = isinstance(error, TimeoutError)
        task = asyncio.create_task(self._give_back(opened.connection, is_hanging=is_hanging))
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)
        self._fail(opened.sent, error)

    def _fail(self, reads: deque[_Read], error: Exception) -> None:
        self._broken(self, error)
        while reads:
            read = reads.popleft()
            read.error = error
            read.end()
            self._ended(read.queue)

    async def _give_back(
        self, connection: psycopg.AsyncConnection[Any], *, is_hanging: bool
    ) -> None:
        """The pool replaces a connection that is closed."""
        try:
            # Refused while an answer is missing.
            connection.pgconn.exit_pipeline_mode()
        except psycopg.Error:
            with contextlib.suppress(psycopg.Error):
                cancel = connection.pgconn.cancel_conn() if is_hanging else None
                # First, so that the database cannot answer the canceled read, and runs no other.
                await connection.close()
                if cancel is not None:
                    await asyncio.to_thread(cancel.blocking)
            await connection.close()
        await self._pool.putconn(connection)


class _PipelineConnection:
    """A connection while it is in pipeline mode."""

    def __init__(
        self,
        connection: psycopg.AsyncConnection[Any],
        limit_s: float,
        ended: Callable[[_Queue], None],
        lost: Callable[[_PipelineConnection, Exception], None],
    ) -> None:
        self.connection = connection
        self.sent: deque[_Read] = deque()
        """In the order in which they are answered."""
        self._limit_s = limit_s
        self._ended = ended
        self._lost = lost
        self._pgconn = connection.pgconn
        self._pgconn.enter_pipeline_mode()
        self._values = Transformer(connection)
        self._rows = Transformer(connection)
        # Behind a pooler, another session may answer the next read.
        self._prepares = connection.prepare_threshold is not None
        self._names: dict[_Prepared, bytes] = {}
        self._names_given = 0
        self._loop = asyncio.get_running_loop()
        # One that libpq does not close by itself: the next connection could have its number then,
        # while the loop still watches it for this one.
        self._socket = os.dup(self._pgconn.socket)
        self._has_left = False
        self._loop.add_reader(self._socket, self._receive)
        self._is_flushing = False
        self._is_unfinished = False
        """Whether reads were sent since the end of the last transaction."""
        self._transactions = 0
        """How many have ended and are not answered."""
        self._left_out: list[_Read] = []
        """Reads of the transaction that is being answered, which are sent again after it."""
        self._watch: asyncio.TimerHandle | None = None

    def leave(self) -> None:
        """Take no notice of the connection any more."""
        self._has_left = True
        self._is_unfinished = False
        self.sent.extend(self._left_out)
        self._left_out.clear()
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        os.close(self._socket)
        if self._watch is not None:
            self._watch.cancel()

    def send(self, read: _Read) -> None:
        """Send a read. Whatever keeps it from being sent is its error."""
        try:
            dumped = self._values.dump_sequence(read.values, [PyFormat.AUTO] * len(read.values))
        except Exception as error:  # noqa: BLE001 - whoever waits must be told
            read.error = error
            read.end()
            self._loop.call_soon(self._ended, read.queue)
            return
        read.sent_s = self._loop.time()
        self.sent.append(read)
        try:
            self._send(read, dumped)
        except psycopg.Error as error:
            self._lost(self, error)
            return
        if not self._is_unfinished:
            self._is_unfinished = True
            self._loop.call_soon(self._finish)
        if self._watch is None:
            self._watch = self._loop.call_later(_LOOK_S, self._look)

    def _finish(self) -> None:
        """End the transaction of the reads that were sent last."""
        if not self._is_unfinished:
            return  # the connection was lost
        self._is_unfinished = False
        self._transactions += 1
        try:
            self._pgconn.pipeline_sync()
            self._flush()
        except psycopg.Error as error:
            self._lost(self, error)

    def _send(self, read: _Read, dumped: Sequence[Any]) -> None:
        pgconn, types, formats = self._pgconn, self._values.types or (), self._values.formats
        statement = _with_numbers(read.statement)
        if not self._prepares or read.has_lacked_statement:
            pgconn.send_query_params(statement, dumped, types, formats, pq.Format.BINARY)
        else:
            prepared = (statement, types)
            name = self._names.get(prepared)
            read.prepares = None
            if name is None:
                self._names_given += 1
                name = self._names[prepared] = b"read%d" % self._names_given
                read.prepares = prepared
                pgconn.send_prepare(name, statement, types)
            pgconn.send_query_prepared(name, dumped, formats, pq.Format.BINARY)

    def _flush(self) -> None:
        """Send what the system's buffer takes, and the rest when it takes more."""
        remains = self._pgconn.flush() == 1
        if remains and not self._is_flushing:
            self._loop.add_writer(self._socket, self._flush_more)
        elif self._is_flushing and not remains:
            self._loop.remove_writer(self._socket)
        self._is_flushing = remains

    def _flush_more(self) -> None:
        try:
            self._flush()
        except psycopg.Error as error:
            self._lost(self, error)

    def _receive(self) -> None:
        """Take the answers that have arrived."""
        pgconn = self._pgconn
        try:
            pgconn.consume_input()
            pauses = 0
            # There is a pause after each answer, and no end of them once the connection is lost.
            while (self.sent or self._transactions) and pauses < 2 and not pgconn.is_busy():
                if self._has_left:  # something could not be sent in place of what was answered
                    return
                result = pgconn.get_result()
                pauses = 0 if result is not None else pauses + 1
                if result is not None:
                    self._take(result)
        except Exception as error:  # noqa: BLE001 - the loop would take no further answers
            self._lost(self, error)
            return
        if pauses > 1 or pgconn.status != pq.ConnStatus.OK:
            self._lost(self, psycopg.OperationalError("The connection was lost"))

    def _take(self, result: pq.abc.PGresult) -> None:
        status = result.status
        if status == pq.ExecStatus.PIPELINE_SYNC:
            self._transactions -= 1
            self._send_left_out()
            return
        if not self.sent:  # the database ends the connection
            raise error_from_result(result)
        read = self.sent[0]
        if read.prepares is not None:
            # The first of two answers.
            if status != pq.ExecStatus.COMMAND_OK:
                self._names.pop(read.prepares, None)
            read.prepares = None
            if status == pq.ExecStatus.FATAL_ERROR:
                read.error = error_from_result(result)
            return
        self.sent.popleft()
        self._answer(read, result)

    def _answer(self, read: _Read, result: pq.abc.PGresult) -> None:
        """Tell whoever waits for a read, or note that it is to be sent again."""
        status = result.status
        if status == pq.ExecStatus.TUPLES_OK:
            self._rows.set_pgresult(result)
            try:
                read.rows = self._rows.load_rows(0, result.ntuples, tuple)
            except Exception as error:  # noqa: BLE001 - whoever waits must be told
                read.error = error
        elif status == pq.ExecStatus.FATAL_ERROR:
            read.error = error_from_result(result)
        if read.error is None and status == pq.ExecStatus.PIPELINE_ABORTED:
            self._left_out.append(read)
        elif isinstance(read.error, InvalidSqlStatementName) and not read.has_lacked_statement:
            # What should have prepared it was left out after an error.
            self._names.clear()
            read.error, read.has_lacked_statement = None, True
            self._left_out.append(read)
        else:
            read.end()
            self._ended(read.queue)

    def _send_left_out(self) -> None:
        """Send what the database has left out after an error."""
        reads, self._left_out = self._left_out, []
        for read in reads:
            if read.found.done():
                self._ended(read.queue)
            else:
                read.queue.pipeline.begin(read)  # if this connection is lost, over the next one

    def _look(self) -> None:
        """Give the connection up if the oldest read takes too long, or if it is lost: uvloop does
        not report a socket with an error."""
        self._watch = None
        self._receive()
        if self._has_left or not self.sent:
            return
        left_s = self.sent[0].sent_s + self._limit_s - self._loop.time()
        if left_s <= 0:
            self._lost(self, TimeoutError())
        elif self._watch is None:
            self._watch = self._loop.call_later(min(left_s, _LOOK_S), self._look)


@cache
def _with_numbers(statement: bytes) -> bytes:
    """The statement with ``$1`` for its first value."""
    first, *others = statement.split(b"%s")
    return first + b"".join(b"$%d%b" % numbered for numbered in enumerate(others, 1))
