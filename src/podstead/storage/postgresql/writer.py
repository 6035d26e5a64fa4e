"""Group commit: how the writes of many tasks share one transaction.

All jobs that arrive while a batch is being stored form the next batch. A transaction that the
database ends because of others (a deadlock, a failed serialization) is run again. If the connection
is lost before the database has confirmed a commit, the outcome is unknown: the writes are reported
as failed, and each of them is in the database as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool

from podstead.core.errors import Overloaded, StorageError
from podstead.core.histogram import Histogram
from podstead.core.messages import counted
from podstead.storage.commit_figures import BATCH_BOUNDS, COMMIT_BOUNDS_S
from podstead.storage.postgresql.apply import Connection
from podstead.storage.postgresql.batch import Batches, Job, JobResult, WriteJob
from podstead.storage.postgresql.connecting import NODE
from podstead.storage.postgresql.errors import JOB_ERRORS, RETRIED, storage_error
from podstead.storage.postgresql.expectations import SeenRows
from podstead.storage.records import CommitOutcome, Committed, Write
from podstead.storage.waiting_jobs import WaitingJobs, storage_of_write

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
                async with self._pool.connection() as connection, self._watching():
                    try:
                        return await self._batches.run(connection, jobs)
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
                    found = await connection.execute(_END_SILENT, (f"%{NODE}", SILENT_S))
                    if found.rowcount:
                        logger.warning(
                            "Ended %s of a node that said nothing more",
                            counted(found.rowcount, "transaction"),
                        )
            except (psycopg.Error, OSError) as error:
                logger.debug("Silent nodes could not be looked for: %s", error)
            await asyncio.sleep(_LOOK_AGAIN_S)
