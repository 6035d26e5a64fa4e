"""Group commit: how the writes of many tasks share one durable commit.

All jobs that arrive while a batch is being committed form the next batch, which may wait a little
for more if the disk is slow (:class:`CommitDelay`). A batch of writes is applied on the event loop,
which takes about ten microseconds per write, and a thread only waits for the disk: if the thread
did both, it would compete with the loop for the interpreter lock at every statement. If another
process is writing, or if the batch contains anything but writes, the thread does everything, so
that the loop never blocks. Batches of different processes queue for a fair lock
(``fair_lock.py``), and jobs that arrive in the meantime join the batch.

The connection and the lock belong to the loop until a batch is put into ``_calls``, and to the
thread from then until ``_end_batch`` is called. There is only one batch at a time, so no lock is
needed.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

import apsw

from podstead.core.errors import StorageError
from podstead.core.histogram import Histogram
from podstead.storage.protocol import BATCH_BOUNDS, COMMIT_BOUNDS_S
from podstead.storage.records import CommitOutcome, Committed, Write
from podstead.storage.sqlite import transaction
from podstead.storage.sqlite.fair_lock import FairLock
from podstead.storage.waiting_jobs import WaitingJobs, storage_of_write

MIN_WAIT_S: Final = 0.001
"""Shorter waits are not worth a timer, and commits that take less than twice this never wait."""

MAX_WAIT_S: Final = 0.01
_SHARE: Final = 0.5
AMONG_OTHERS_S: Final = 0.004
"""How long a batch waits while other processes write."""

UNDELAYED_BATCHES: Final = 15
"""How many batches start at once after a wait that did not pay off."""

# The least of a few measurements, since the others may contain waiting for the interpreter lock.
_MEASUREMENTS: Final = 8


class CommitDelay:
    """Decides whether a batch starts at once, or waits a little for more writes to join it.

    A commit costs the same however many writes share it. On a slow disk, starting at once splits
    the writers into two groups: while one group's commit is on its way, the other one waits, so
    each commit carries only half of the writes that it could. A batch may therefore wait for the
    writers whose last commit has just ended, like PostgreSQL's ``commit_delay`` with
    ``commit_siblings``, but the numbers follow from what is observed:

    - It waits only for writers that were there a moment ago, so a lone writer never waits.
    - It waits at most half the time that a commit takes, counted from the end of the last one, and
      not at all on a disk that is fast.
    - While other processes write, too, it waits for a few milliseconds on any disk. Each process
      has only some of the writers, and the others' batches leave it the time for theirs to come
      together.
    - Otherwise, waiting for a time t pays off if it makes the batch larger by a greater factor than
      t makes it later. After a wait that did not, the next batches start at once.

    Pure: no clock. Times are passed in, in seconds.
    """

    __slots__ = ("_commits_s", "_ended_s", "_undelayed", "_waited_from", "_waiting", "expected")

    def __init__(self) -> None:
        self._commits_s: deque[float] = deque(maxlen=_MEASUREMENTS)
        self._ended_s = 0.0
        self.expected = 0
        """How many writes were in the last batch, or waited when it ended."""
        self._undelayed = 0
        self._waited_from: float | None = None
        self._waiting = 0

    def wait_s(self, now_s: float, waiting: int, *, others_write: bool = False) -> float:
        """How long to wait before asking again while ``waiting`` writes wait; 0 to start now."""
        if others_write:
            self._waited_from = None
            left_s = self._ended_s + AMONG_OTHERS_S - now_s
            # The event loop counts in milliseconds, and would ask again at once for less than one.
            return max(left_s, MIN_WAIT_S) if waiting < self.expected and left_s > 0 else 0.0
        until_s = self._ended_s + min(self._least_commit_s() * _SHARE, MAX_WAIT_S)
        left_s = until_s - now_s
        if self._waited_from is None:
            if self._undelayed:
                self._undelayed -= 1
                return 0.0
            if waiting >= self.expected or left_s < MIN_WAIT_S:
                return 0.0
            self._waited_from, self._waiting = now_s, waiting
            return MIN_WAIT_S
        if waiting < self.expected and left_s > 0:
            return MIN_WAIT_S
        self._judge(now_s - self._waited_from, waiting)
        self._waited_from = None
        return 0.0

    def batch_ended(self, now_s: float, *, writes: int, waiting: int, commit_s: float) -> None:
        """Note that a batch has ended while further writes wait for the next one."""
        self._commits_s.append(commit_s)
        self._ended_s = now_s
        self.expected = writes + waiting
        self._waited_from = None

    def _judge(self, waited_s: float, waiting: int) -> None:
        if (waiting / self._waiting - 1) * self._least_commit_s() < waited_s:
            self._undelayed = UNDELAYED_BATCHES

    def _least_commit_s(self) -> float:
        return min(self._commits_s, default=0.0)


T = TypeVar("T")

MAX_JOBS = 128
"""The maximum size of a batch, which bounds how long the event loop and other processes wait."""

MAX_RESOURCES_ON_LOOP = 512
"""Writes that change more resources than this, such as the move of a tree, run in the thread."""

MAX_HOLD_S = 0.025
"""How long a batch waits for writes that were announced (:meth:`Writer.expect`)."""

MAX_LOCK_WAIT_S = 5.0
"""How long a batch waits for the lock. After that, the process before it is taken for stopped, and
the batch competes with all others for SQLite's lock, for which it waits as well."""

_Waiting = tuple[transaction.Job, "asyncio.Future[transaction.JobResult]"]
_Completion = Callable[[Sequence[transaction.Job]], list[transaction.JobResult]]


class Writer:
    """Groups jobs into batches for one connection. Used from one event loop only."""

    def __init__(
        self,
        connection: transaction.WriteConnection,
        lock: FairLock,
        *,
        max_waiting: int,
        on_changes: Callable[[], None] = lambda: None,
    ) -> None:
        """Take ownership of ``connection`` and ``lock``.

        Jobs are refused while ``max_waiting`` are waiting, and those of one storage while half as
        many of it are. ``on_changes`` is called after each batch that adds to the change log.
        """
        self._connection = connection
        self._lock = lock
        self._delay = CommitDelay()
        # Runs while a batch waits for more writes.
        self._timer: asyncio.TimerHandle | None = None
        self._awaited = 0
        # Whether it has waited as long as it should.
        self._held = False
        self._on_changes = on_changes
        self._loop = asyncio.get_running_loop()
        self._waiting: WaitingJobs[_Waiting] = WaitingJobs(max_waiting)
        self._current_batch: list[_Waiting] = []
        # Cleared by the first job, and set when a batch ends while no job is waiting.
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self.batches = Histogram(BATCH_BOUNDS)
        """The sizes of the batches so far."""
        self.commits_s = Histogram(COMMIT_BOUNDS_S)
        """How long the batches waited for the disk."""
        self._calls: SimpleQueue[tuple[list[transaction.Job], _Completion] | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, name="podstead-commit", daemon=True)
        self._thread.start()

    async def commit(self, write: Write) -> CommitOutcome:
        """Decide and store one write. Raises StorageError or Overloaded."""
        outcome: CommitOutcome = await self._submit(write, storage_of_write(write))
        return outcome

    async def run(self, statements: Callable[[apsw.Connection], T]) -> T:
        """Run statements in the transaction of a batch. Raises StorageError or Overloaded."""
        result: T = await self._submit(statements)
        return result

    def _submit(self, job: transaction.Job, storage: str = "") -> asyncio.Future[Any]:
        """A future for the result of the job, whose kind depends on the job."""
        if self._closed:
            raise StorageError("The store is closed")
        future: asyncio.Future[transaction.JobResult] = self._loop.create_future()
        self._waiting.add((job, future), storage)
        if self._idle.is_set():
            # Not at once: other tasks in this iteration of the loop may add jobs.
            self._idle.clear()
            self._loop.call_soon(self._start_batch)
        elif not self._awaited and len(self._waiting) >= self._delay.expected:
            self._wait_no_more()
        return future

    def expect(self, writes: int) -> None:
        """So many writes follow the one that is submitted next, and the batch may wait for them.

        It does not wait any more if there are none.
        """
        self._awaited = writes
        if not writes:
            self._wait_no_more()

    def _wait_no_more(self) -> None:
        """Start the batch that waits for more writes, if there is one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._held = True
            self._loop.call_soon(self._start_batch)

    @property
    def waiting(self) -> int:
        """How many jobs wait for their batch."""
        return len(self._waiting)

    async def close(self) -> None:
        """Finish all jobs, then close the connection. Raises StorageError."""
        self._closed = True
        await self._idle.wait()
        self._calls.put(None)
        await self._loop.run_in_executor(None, self._finish)

    # --- on the event loop --------------------------------------------------------------------

    def _start_batch(self) -> None:
        self._timer = None
        wait_s = self._wait_s()
        if wait_s:
            self._timer = self._loop.call_later(wait_s, self._start_batch)
        else:
            self._lock.call_when_acquired(self._loop, self._write_batch, MAX_LOCK_WAIT_S)

    def _write_batch(self) -> None:
        self._held = False
        self._awaited = 0  # those that have not come by now may never come
        self._current_batch = self._waiting.take(MAX_JOBS)
        jobs = [job for job, _ in self._current_batch]
        try:
            completion = self._apply(jobs)
        except Exception as error:  # noqa: BLE001 - no caller may wait forever
            self._lock.release()
            self._end_batch(transaction.failures(jobs, error), 0.0)
        else:
            self._calls.put((jobs, completion))

    def _wait_s(self) -> float:
        """How long to wait before asking again; 0 if the next batch may start."""
        if self._held or len(self._waiting) >= MAX_JOBS:
            return 0.0
        if self._awaited:
            self._held = True
            return MAX_HOLD_S
        return self._delay.wait_s(
            self._loop.time(), len(self._waiting), others_write=self._lock.others_write
        )

    def _apply(self, jobs: list[transaction.Job]) -> _Completion:
        """Apply the batch if that does not block, and return what the thread must do."""
        connection = self._connection
        # Statements such as those of a sweep may take long; the time for a small write is bounded.
        only_small = all(
            isinstance(job, Write) and job.size <= MAX_RESOURCES_ON_LOOP for job in jobs
        )
        if not only_small or not connection.begin(wait_s=0):
            return connection.run
        try:
            results = connection.apply(jobs)
        except apsw.Error as error:
            if transaction.is_job_error(error):
                return connection.run_each
            return partial(connection.retry_on_full_disk, error=error)
        return partial(_commit_batch, connection, results)

    def _end_batch(self, results: Sequence[transaction.JobResult], commit_s: float) -> None:
        self._delay.batch_ended(
            self._loop.time(), writes=len(results), waiting=len(self._waiting), commit_s=commit_s
        )
        self.batches.observe(len(results))
        self.commits_s.observe(commit_s)
        for (_, future), result in zip(self._current_batch, results, strict=True):
            if future.cancelled():  # the job was done nevertheless
                continue
            if isinstance(result, StorageError):
                future.set_exception(result)
            else:
                future.set_result(result)
        if any(isinstance(each, Committed) and each.sequence is not None for each in results):
            self._on_changes()
        if self._waiting:
            # After the callers that were just woken, whose next writes can join the batch.
            self._loop.call_soon(self._start_batch)
        else:
            self._idle.set()

    # --- in the thread ------------------------------------------------------------------------

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            jobs, completion = call
            began_s = time.perf_counter()
            try:
                results = completion(jobs)
            except Exception as error:  # noqa: BLE001 - no caller may wait forever
                results = transaction.failures(jobs, error)
            # Here and not on the loop, which may be busy: others wait for it.
            self._lock.release()
            commit_s = time.perf_counter() - began_s
            self._loop.call_soon_threadsafe(self._end_batch, results, commit_s)

    def _finish(self) -> None:
        self._thread.join()
        self._lock.close()
        try:
            self._connection.close()
        except apsw.Error as error:
            raise StorageError("The database could not be closed") from error


def _commit_batch(
    connection: transaction.WriteConnection,
    results: list[transaction.JobResult],
    jobs: Sequence[transaction.Job],
) -> list[transaction.JobResult]:
    try:
        connection.commit()
    except apsw.Error as error:
        return connection.retry_on_full_disk(jobs, error)
    return results
