"""Group commit: how the writes of many tasks share one transaction.

All jobs that arrive while a batch is being stored form the next batch. A transaction that the
database ends because of others (a deadlock, a failed serialization) is run again. If the connection
is lost before the database has confirmed a commit, the outcome is unknown: the writes are reported
as failed, and each of them is in the database as a whole or not at all.

A batch of writes takes one round trip if they find what the worker expects: begin, lock, compare,
store and commit are sent at once. Otherwise the first round trip begins the transaction, locks and
reads; the second stores what was decided and commits.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, TypeVar

import psycopg
from msgspec.structs import replace
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from podstead.core.errors import Overloaded, StorageError
from podstead.core.histogram import Histogram
from podstead.core.messages import counted
from podstead.storage.decision import InvalidWrite, decide
from podstead.storage.postgresql import connecting
from podstead.storage.postgresql.apply import Connection, Cursor, base_of, flush, load, lock
from podstead.storage.postgresql.expectations import CHANGED, Expectations, SeenRows, require
from podstead.storage.protocol import BATCH_BOUNDS, COMMIT_BOUNDS_S
from podstead.storage.records import CommitOutcome, Committed, Write
from podstead.storage.state import RequiredRows, State
from podstead.storage.steps import Begin, Result
from podstead.storage.waiting_jobs import WaitingJobs, storage_of_write

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


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A write, and what its request has seen of the rows that it is decided on."""

    write: Write
    seen: SeenRows | None


Job = WriteJob | Statements
JobResult = object
"""The CommitOutcome of a write, the return value of statements, or an error to raise."""


class Batches:
    """Runs the batches of a worker, one after the other."""

    def __init__(self) -> None:
        self._expectations = Expectations()

    async def run(self, connection: Connection, jobs: Sequence[Job]) -> list[JobResult]:
        """Run the writes, store what they change, and then run the statements.

        Statements must see the effects of the writes in their batch. Raises psycopg.Error; nothing
        has changed then, unless the connection was lost.
        """
        writes = [job for job in jobs if isinstance(job, WriteJob)]
        needs = RequiredRows()
        for job in writes:
            needs.add(job.write)
        try:
            if len(writes) == len(jobs):
                results = await self._run_as_expected(connection, writes, needs)
                if results is not None:
                    return results
            return await self._run_in_two_trips(connection, jobs, needs)
        except Exception:
            await _roll_back(connection)
            raise

    async def _run_as_expected(
        self, connection: Connection, jobs: Sequence[WriteJob], needs: RequiredRows
    ) -> list[JobResult] | None:
        """Run writes in one round trip; ``None`` if something is not known, or was expected
        wrongly. The transaction has failed then, and must be ended."""
        seen = [job.seen for job in jobs if job.seen is not None]
        state = self._expectations.state(needs, seen, now_s=monotonic())
        if state is None:
            return None
        try:
            async with connecting.pipelined(connection):
                await _begin(connection)
                await lock(connection, needs)
                await require(connection, needs, state)
                outcomes = _decide_all(jobs, state)
                numbers = await flush(connection, state)
                ended = await connection.execute("COMMIT")
        except psycopg.Error as error:
            if error.sqlstate != CHANGED:
                raise
            self._expectations.were_wrong(needs, now_s=monotonic())
            return None
        _require_commit(ended)
        self._expectations.keep(needs, state, now_s=monotonic())
        return await _numbered(outcomes, numbers)

    async def _run_in_two_trips(
        self, connection: Connection, jobs: Sequence[Job], needs: RequiredRows
    ) -> list[JobResult]:
        writes = [job for job in jobs if isinstance(job, WriteJob)]
        state: State | None = None
        outcomes: list[JobResult] = []
        numbers: Cursor | None = None
        others: dict[int, object] = {}
        # Within the pipeline, only results that are needed are waited for: those of the reads, and
        # the confirmation of the commit, for which leaving the pipeline waits. (The driver's own
        # transactions wait for their beginning and their end as well.)
        async with connecting.pipelined(connection):
            await _begin(connection)
            if writes:
                await lock(connection, needs)
                state = await load(connection, needs)
                outcomes = _decide_all(writes, state)
                numbers = await flush(connection, state)
            for place, job in enumerate(jobs):
                if not isinstance(job, WriteJob):
                    others[place] = await job(connection)
            ended = await connection.execute("COMMIT")  # skipped by the database after an error
        _require_commit(ended)
        if state is not None and not others:  # statements may have changed the same rows
            self._expectations.keep(needs, state, now_s=monotonic())
        written = iter(await _numbered(outcomes, numbers))
        return [
            next(written) if isinstance(job, WriteJob) else others[place]
            for place, job in enumerate(jobs)
        ]


async def run_steps(connection: Connection, begin: Begin[Result]) -> Result:
    """Run the statements of some steps, waiting for rows only. Raises psycopg.Error."""
    steps = begin()
    try:
        text, values, returns_rows = next(steps)
        while True:
            cursor = await connection.execute(text.encode(), values or None)
            rows = await cursor.fetchall() if returns_rows else []
            text, values, returns_rows = steps.send(rows)
    except StopIteration as end:
        result: Result = end.value
        return result


async def _begin(connection: Connection) -> None:
    if connection.info.transaction_status == TransactionStatus.INERROR:
        # Which ends a failed transaction as ROLLBACK does, after which the driver would prepare all
        # statements anew.
        await connection.execute("COMMIT")
    await connection.execute("BEGIN")
    await connection.execute(_LIMIT_TIME)


def _require_commit(ended: Cursor) -> None:
    if ended.statusmessage != "COMMIT":  # as it reports the end of a failed transaction
        raise psycopg.OperationalError("The transaction was rolled back")


async def _roll_back(connection: Connection) -> None:
    """End the transaction after an error. The pool replaces the connection if it is lost."""
    if connection.info.transaction_status in _OPEN:
        with contextlib.suppress(psycopg.Error):
            await connection.rollback()


def _decide_all(jobs: Sequence[WriteJob], state: State) -> list[JobResult]:
    outcomes: list[JobResult] = []
    for job in jobs:
        try:
            outcomes.append(decide(job.write, state))
        except InvalidWrite as error:  # the state is unchanged, so the other writes continue
            outcomes.append(connecting.storage_error(error, "The change could not be stored"))
    return outcomes


async def _numbered(outcomes: Sequence[JobResult], numbers: Cursor | None) -> list[JobResult]:
    """The outcomes with their places in the change log. Raises psycopg.Error."""
    if numbers is None:
        return list(outcomes)
    base = await base_of(numbers)
    return [
        replace(outcome, sequence=outcome.sequence + base)
        if isinstance(outcome, Committed) and outcome.sequence is not None
        else outcome
        for outcome in outcomes
    ]


logger = logging.getLogger("podstead.storage")

T = TypeVar("T")

MAX_JOBS: Final = 128
"""The maximum size of a batch, which bounds how long the locks of its storages are held."""

MAX_ATTEMPTS: Final = 5
"""How often a transaction is run that the database ends because of others."""

SILENT_S: Final = 1.5
"""After this time, a batch that is not done looks for nodes that have said nothing for as long, and
ends those of their transactions that keep others waiting."""

_LOOK_AGAIN_S: Final = 0.5

# A node that was stopped may have sent half of its transaction. The database itself would wait for
# the rest: its time-outs begin when it is ready for the next query. Sessions of others than nodes
# are left alone.
_END_SILENT: Final = (
    "WITH blocking AS MATERIALIZED (SELECT unnest(pg_blocking_pids(pid)) AS pid"
    " FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())"
    " SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN blocking USING (pid)"
    " WHERE usename = current_user AND application_name LIKE %s"
    " AND wait_event_type = 'Client'"
    " AND state_change < clock_timestamp() - make_interval(secs => %s)"
)

_Waiting = tuple[Job, "asyncio.Future[JobResult]"]


class Writer:
    """Groups jobs into batches. Used from one event loop only."""

    def __init__(
        self,
        pool: AsyncConnectionPool,
        *,
        others: AsyncConnectionPool,
        max_waiting: int,
        on_changes: Callable[[], None] = lambda: None,
    ) -> None:
        """``pool`` has the connection for batches, and ``others`` those that are free meanwhile.

        Jobs are refused while ``max_waiting`` are waiting, and those of one storage while half as
        many of it are. ``on_changes`` is called after each batch that adds to the change log.
        """
        self._pool = pool
        self._others = others
        self._batches = Batches()
        self._on_changes = on_changes
        self._waiting: WaitingJobs[_Waiting] = WaitingJobs(max_waiting)
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

    async def commit(self, write: Write, seen: SeenRows | None = None) -> CommitOutcome:
        """Decide and store one write; ``seen`` is what it is expected to be decided on. Raises
        StorageError or Overloaded."""
        job = WriteJob(write, seen)
        outcome: CommitOutcome = await self._submit(job, storage_of_write(write))
        return outcome

    async def run(self, statements: Callable[[Connection], Awaitable[T]]) -> T:
        """Run statements in the transaction of a batch. Raises StorageError or Overloaded."""
        result: T = await self._submit(statements)
        return result

    def _submit(self, job: Job, storage: str = "") -> asyncio.Future[Any]:
        """A future for the result of the job, whose kind depends on the job."""
        if self._closed:
            raise StorageError("The store is closed")
        future: asyncio.Future[JobResult] = asyncio.get_running_loop().create_future()
        self._waiting.add((job, future), storage)
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
            batch = self._waiting.take(MAX_JOBS)
            jobs = [job for job, _ in batch]
            began_s = time.perf_counter()
            try:
                results = await self._run(jobs)
            except Exception as error:  # noqa: BLE001 - no caller may wait forever
                results = [connecting.storage_error(error, "The change could not be stored")] * len(
                    jobs
                )
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
                async with self._pool.connection() as connection, self._watching():
                    try:
                        return await self._batches.run(connection, jobs)
                    except psycopg.errors.ReadOnlySqlTransaction:
                        # This is no primary any more; the next connection looks for the one that is
                        await connection.close()
                        raise
            except connecting.RETRIED:
                if attempt == MAX_ATTEMPTS:
                    raise
                logger.info(
                    "A transaction that the database had ended because of another is run again"
                )
            except connecting.JOB_ERRORS as error:
                if len(jobs) == 1:
                    return [connecting.storage_error(error, "The change could not be stored")]
                return [result for job in jobs for result in await self._run([job])]
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        """End the transactions of silent nodes if what is done in the context takes long."""
        looking: list[asyncio.Task[None]] = []
        watch = asyncio.get_running_loop().call_later(
            SILENT_S, lambda: looking.append(asyncio.create_task(self._end_silent()))
        )
        try:
            yield
        finally:
            watch.cancel()
            for each in looking:
                each.cancel()

    async def _end_silent(self) -> None:
        while True:
            try:
                async with self._others.connection() as connection:
                    found = await connection.execute(_END_SILENT, (f"%{connecting.NODE}", SILENT_S))
                    if found.rowcount:
                        logger.warning(
                            "Ended %s of a node that said nothing more",
                            counted(found.rowcount, "transaction"),
                        )
            except (psycopg.Error, OSError) as error:
                logger.debug("Silent nodes could not be looked for: %s", error)
            await asyncio.sleep(_LOOK_AGAIN_S)
