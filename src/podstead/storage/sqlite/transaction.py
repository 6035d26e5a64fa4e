"""Running a batch of jobs in one transaction, and handling its failures.

A batch is applied and then committed in two calls, because only the second one waits for the disk.
A disk error fails the entire batch, and nothing is changed. Any other error, such as a violated
constraint, is caused by one job: the batch is rolled back, and each job runs in its own
transaction.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from podstead.core.errors import DiskFull, StorageError
from podstead.storage.decision import InvalidWrite, decide
from podstead.storage.disk_space import DiskSpace
from podstead.storage.records import Write
from podstead.storage.sqlite import row_changes as sqlite_row_changes
from podstead.storage.sqlite.apply import flush, load
from podstead.storage.sqlite.connection import WRITE_BUSY_S, BusyHandler, open_writer
from podstead.storage.state import RequiredRows

Statements = Callable[[apsw.Connection], object]
"""Runs statements as part of a batch; the return value is the job's result."""

Job = Write | Statements
JobResult = object
"""The CommitOutcome of a write, the return value of statements, or a StorageError to raise."""

_JOB_ERRORS = (apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError, apsw.RangeError)


class WriteConnection:
    """The connection that runs batches. Only one thread may use it at a time."""

    def __init__(
        self,
        database: Path,
        change_queue: sqlite_row_changes.ChangeQueue,
        space: DiskSpace,
        *,
        shared: sqlite_row_changes.SharedChanges | None = None,
        vfs: str | None = None,
    ) -> None:
        """Open the database; committed batches are appended to ``change_queue``, and put into
        ``shared`` for other workers.

        Raises apsw.Error.
        """
        self._database = database
        self._space = space
        self._change_queue = change_queue
        self._shared = shared
        # The changes of the open transaction, which readers get only after its commit.
        self._applied: sqlite_row_changes.RowChanges | None = None
        self._vfs = vfs
        self._busy_handler = BusyHandler(0.0)
        self._connection = self._open()
        # False after a transaction could not be rolled back, when the connection is closed.
        self._usable = True

    def _open(self) -> apsw.Connection:
        log_bytes = self._space.reserve_bytes() // 5 * 4
        return open_writer(
            self._database, self._busy_handler, vfs=self._vfs, max_log_bytes=log_bytes
        )

    def close(self) -> None:
        """Close, rolling back what is not committed. Raises apsw.Error."""
        self._connection.close()

    def begin(self, *, wait_s: float) -> bool:
        """Begin a write transaction; False if another writer was active for all of ``wait_s``.

        Raises apsw.Error.
        """
        if not self._usable:
            self._connection = self._open()
            self._usable = True
        self._busy_handler.wait_s = wait_s
        try:
            # Takes the write lock at once. A transaction that begins as a reader could never get it
            # if another process has written in between.
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        return True

    def apply(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run the jobs in the open transaction. If it raises apsw.Error, nothing is changed."""
        try:
            results, self._applied = _apply(self._connection, jobs)
        except BaseException:
            self._roll_back()
            raise
        return results

    def commit(self) -> None:
        """Commit the transaction durably. If it raises apsw.Error, nothing is changed."""
        applied, self._applied = self._applied, None
        try:
            self._connection.execute("COMMIT")  # returns once it is on disk (connection.py)
        except BaseException:
            self._roll_back()
            raise
        if applied is not None and applied.before != applied.after:
            self._change_queue.append(applied)
            if self._shared is not None:
                self._shared.put(applied)

    def retry_on_full_disk(self, jobs: Sequence[Job], error: apsw.Error) -> list[JobResult]:
        """If the disk is full, free some space and retry the jobs that store no new content.

        All other jobs get a failure as their result.
        """
        if not self._is_full(error):
            return failures(jobs, error)
        self._space.forget_reading()
        # Deletions and revocations must succeed even on a full disk; the reserve is for them.
        small = [job for job in jobs if not (isinstance(job, Write) and job.stores_content)]
        if not small or not self._free_space():
            return failures(jobs, _full(error))
        results = dict(zip(map(id, small), self.run(small, space_released=True), strict=True))
        return [results[id(job)] if id(job) in results else _full(error) for job in jobs]

    def _is_full(self, error: apsw.Error) -> bool:
        # A full disk is not always reported as such: for the index of the log, it is an I/O error.
        return isinstance(error, apsw.FullError) or (
            isinstance(error, apsw.IOError) and self._space.is_exhausted()
        )

    def _free_space(self) -> bool:
        """Release the reserve, and checkpoint the log so that it can be reused and need not
        grow."""
        released = self._space.release()
        try:
            # Passive, because a checkpoint that waits for readers could block every writer.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except apsw.Error:
            return released
        return True

    def run(self, jobs: Sequence[Job], *, space_released: bool = False) -> list[JobResult]:
        """Begin, apply and commit, waiting for other writers; failures are among the results."""
        try:
            if not self.begin(wait_s=WRITE_BUSY_S):
                return failures(jobs, None)
            results = self.apply(jobs)
            self.commit()
        except _JOB_ERRORS as error:
            return failures(jobs, error) if len(jobs) == 1 else self.run_each(jobs)
        except apsw.Error as error:
            if space_released:  # called by retry_on_full_disk, which must not be called again
                return failures(jobs, _full(error) if self._is_full(error) else error)
            return self.retry_on_full_disk(jobs, error)
        return results

    def run_each(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run each job in a transaction of its own."""
        return [result for job in jobs for result in self.run([job])]

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            # The state is unknown. Closing the connection rolls back what is not committed, and
            # ``begin`` opens another.
            self._usable = False
            self._connection.close(force=True)


def is_job_error(error: apsw.Error) -> bool:
    """Whether the error is caused by one job, so that the others may succeed without it."""
    return isinstance(error, _JOB_ERRORS)


def _full(cause: BaseException | None) -> DiskFull:
    error = DiskFull()
    error.__cause__ = cause
    return error


def failure(cause: Exception | None) -> StorageError:
    """The error for a job that was not done."""
    if isinstance(cause, DiskFull):
        return _full(cause.__cause__)
    error = StorageError("The change could not be stored")
    error.__cause__ = cause
    return error


def failures(jobs: Sequence[Job], cause: Exception | None) -> list[JobResult]:
    """The results of a batch that changed nothing."""
    return [failure(cause) for _ in jobs]


def _apply(
    connection: apsw.Connection, jobs: Sequence[Job]
) -> tuple[list[JobResult], sqlite_row_changes.RowChanges | None]:
    """Run the writes, store what they change, and then run the statements.

    Statements must see the effects of the writes in their batch: discarding a blob, for example,
    must notice that a write has used it. Their own changes are not among the returned ones, but the
    database counts them (``row_changes.py``), so readers notice and read again.
    """
    writes = [job for job in jobs if isinstance(job, Write)]
    written, changes = _apply_writes(connection, writes) if writes else ([], None)
    if len(writes) == len(jobs):
        return written, changes
    outcomes = iter(written)
    results = [next(outcomes) if isinstance(job, Write) else job(connection) for job in jobs]
    return results, changes


def _apply_writes(
    connection: apsw.Connection, writes: Sequence[Write]
) -> tuple[list[JobResult], sqlite_row_changes.RowChanges]:
    # One load and one flush for the entire batch, because statements are the main cost.
    needs = RequiredRows()
    for write in writes:
        needs.add(write)
    before = sqlite_row_changes.read_row_count(connection)
    state = load(connection, needs)
    outcomes: list[JobResult] = []
    for write in writes:
        try:
            outcomes.append(decide(write, state))
        except InvalidWrite as error:  # the state is unchanged, so the other writes continue
            outcomes.append(failure(error))
    flush(connection, state)
    return outcomes, sqlite_row_changes.row_changes(
        state, before=before, after=sqlite_row_changes.read_row_count(connection)
    )
