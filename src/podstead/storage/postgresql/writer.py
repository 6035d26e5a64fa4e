"""Group commit: how the writes of many tasks share one transaction and two round trips.

All jobs that arrive while a batch is being stored form the next batch. The first round trip begins
the transaction, locks and reads; the second stores what was decided and commits. A transaction that
the database ends because of others (a deadlock, a failed serialization) is run again. If the
connection is lost before the database has confirmed a commit, the outcome is unknown: the writes
are reported as failed, and each of them is in the database as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import psycopg
from msgspec.structs import replace
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from podstead.core.errors import Overloaded, StorageError
from podstead.core.histogram import Histogram
from podstead.storage.commit_figures import BATCH_BOUNDS, COMMIT_BOUNDS_S
from podstead.storage.decision import InvalidWrite, decide
from podstead.storage.postgresql.apply import Connection, Cursor, base_of, flush, load
from podstead.storage.postgresql.errors import JOB_ERRORS, RETRIED, storage_error
from podstead.storage.postgresql.rows import root_of
from podstead.storage.records import CommitOutcome, Committed, Write
from podstead.storage.state import Needs

logger = logging.getLogger("podstead.storage")

T = TypeVar("T")

MAX_JOBS: Final = 128
"""The maximum size of a batch, which bounds how long the locks of its storages are held."""

MAX_ATTEMPTS: Final = 5
"""How often a transaction is run that the database ends because of others."""

LOCK_TIMEOUT_S: Final = 30
"""After this time, the database ends a statement of a write that waits for a lock. The pool ends
what takes long for another reason."""

IDLE_TIMEOUT_S: Final = 10
"""After this time, the database ends the transaction of a node that says nothing more, since all
others may be waiting for its locks."""

# The database must not end a COMMIT: if one waits for a synchronous standby then, it is reported as
# done, although the standby does not have it.
_LIMIT_TIME: Final = (
    f"SELECT set_config('lock_timeout', '{LOCK_TIMEOUT_S}s', true),"
    " set_config('statement_timeout', '0', true),"
    f" set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT_S}s', true)"
)

_OPEN: Final = (TransactionStatus.INTRANS, TransactionStatus.INERROR)

Statements = Callable[[Connection], Awaitable[object]]
"""Runs statements as part of a batch; the return value is the job's result."""

Job = Write | Statements
JobResult = object
"""The CommitOutcome of a write, the return value of statements, or an error to raise."""

_Waiting = tuple[Job, "asyncio.Future[JobResult]"]


class Writer:
    """Groups jobs into batches. Used from one event loop only."""

    def __init__(
        self,
        pool: AsyncConnectionPool,
        *,
        max_waiting: int,
        on_changes: Callable[[], None] = lambda: None,
    ) -> None:
        """Jobs are refused while ``max_waiting`` are waiting, and those of one storage while half
        as many of it are. ``on_changes`` is called after each
        batch that adds to the change log."""
        self._pool = pool
        self._max_waiting = max_waiting
        self._on_changes = on_changes
        self._waiting: deque[_Waiting] = deque()
        self._waiting_of: dict[str, int] = {}
        """How many writes of each storage wait or are being stored."""
        self._task: asyncio.Task[None] | None = None
        self.batches = Histogram(BATCH_BOUNDS)
        """The sizes of the batches so far."""
        self.commits_s = Histogram(COMMIT_BOUNDS_S)
        """How long each of them took, from the connection to the commit."""
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of jobs that no batch has taken yet."""
        return len(self._waiting)

    async def commit(self, write: Write) -> CommitOutcome:
        """Decide and store one write. Raises StorageError or Overloaded."""
        storage = _storage_of(write)
        waiting = self._waiting_of.get(storage, 0)
        if storage and waiting >= self._max_waiting // 2:
            raise Overloaded("Too many changes of this storage are waiting to be stored")
        self._waiting_of[storage] = waiting + 1
        try:
            outcome: CommitOutcome = await self._submit(write)
        finally:
            self._waiting_of[storage] -= 1
            if not self._waiting_of[storage]:
                del self._waiting_of[storage]
        return outcome

    async def run(self, statements: Callable[[Connection], Awaitable[T]]) -> T:
        """Run statements in the transaction of a batch. Raises StorageError or Overloaded."""
        result: T = await self._submit(statements)
        return result

    def _submit(self, job: Job) -> asyncio.Future[Any]:
        """A future for the result of the job, whose kind depends on the job."""
        if self._closed:
            raise StorageError("The store is closed")
        if len(self._waiting) >= self._max_waiting:
            raise Overloaded("Too many changes are waiting to be stored")
        future: asyncio.Future[JobResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run_batches(), name="podstead-commits")
        return future

    async def close(self) -> None:
        """Finish all jobs."""
        self._closed = True
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run_batches(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_JOBS))]
            jobs = [job for job, _ in batch]
            began_s = time.perf_counter()
            try:
                results = await self._run(jobs)
            except Exception as error:  # noqa: BLE001 - no caller may wait forever
                results = [storage_error(error, "The change could not be stored")] * len(jobs)
            self.batches.observe(len(jobs))
            self.commits_s.observe(time.perf_counter() - began_s)
            for (_, future), result in zip(batch, results, strict=True):
                if future.cancelled():  # the job was done nevertheless
                    continue
                if isinstance(result, StorageError | Overloaded):
                    future.set_exception(result)
                else:
                    future.set_result(result)
            if any(isinstance(each, Committed) and each.sequence is not None for each in results):
                self._on_changes()
        self._task = None

    async def _run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run the jobs in one transaction, or each in its own if one of them fails the others."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                async with self._pool.connection() as connection:
                    try:
                        return await _transaction(connection, jobs)
                    except psycopg.errors.ReadOnlySqlTransaction:
                        # This is no primary any more; the next connection looks for the one that is
                        await connection.close()
                        raise
            except RETRIED:
                if attempt == MAX_ATTEMPTS:
                    raise
                logger.info("A transaction is run again, since another was in its way")
            except JOB_ERRORS as error:
                if len(jobs) == 1:
                    return [storage_error(error, "The change could not be stored")]
                return [result for job in jobs for result in await self._run([job])]
        raise AssertionError("unreachable")


async def _transaction(connection: Connection, jobs: Sequence[Job]) -> list[JobResult]:
    """Run the writes, store what they change, and then run the statements.

    Statements must see the effects of the writes in their batch.
    """
    writes = [job for job in jobs if isinstance(job, Write)]
    outcomes: list[JobResult] = []
    numbers: Cursor | None = None
    others: dict[int, object] = {}
    try:
        # Within the pipeline, only results that are needed are waited for: those of the reads, and
        # the confirmation of the commit, for which leaving the pipeline waits. (The driver's own
        # transactions wait for their beginning and their end as well.)
        async with connection.pipeline():
            await connection.execute("BEGIN")
            await connection.execute(_LIMIT_TIME)
            if writes:
                outcomes, numbers = await _apply_writes(connection, writes)
            for place, job in enumerate(jobs):
                if not isinstance(job, Write):
                    others[place] = await job(connection)
            ended = await connection.execute("COMMIT")  # skipped by the database after an error
        if ended.statusmessage != "COMMIT":  # as it reports the end of a failed transaction
            raise psycopg.OperationalError("The transaction was rolled back")
    except Exception:
        await _roll_back(connection)
        raise
    base = 0 if numbers is None else await base_of(numbers)
    written = iter([_numbered(outcome, base) for outcome in outcomes])
    return [
        next(written) if isinstance(job, Write) else others[place] for place, job in enumerate(jobs)
    ]


async def _roll_back(connection: Connection) -> None:
    """End the transaction after an error. The pool replaces the connection if it is lost."""
    if connection.info.transaction_status in _OPEN:
        with contextlib.suppress(psycopg.Error):
            await connection.rollback()


async def _apply_writes(
    connection: Connection, writes: Sequence[Write]
) -> tuple[list[JobResult], Cursor | None]:
    needs = Needs()
    for write in writes:
        needs.add(write)
    state = await load(connection, needs)
    outcomes: list[JobResult] = []
    for write in writes:
        try:
            outcomes.append(decide(write, state))
        except InvalidWrite as error:  # the state is unchanged, so the other writes continue
            outcomes.append(storage_error(error, "The change could not be stored"))
    return outcomes, await flush(connection, state)


def _storage_of(write: Write) -> str:
    """The storage that a write changes first, empty if it changes none."""
    if write.puts:
        return root_of(write.puts[0].path)
    return root_of(write.deletes[0]) if write.deletes else ""


def _numbered(outcome: JobResult, base: int) -> JobResult:
    if isinstance(outcome, Committed) and outcome.sequence is not None:
        return replace(outcome, sequence=outcome.sequence + base)
    return outcome
