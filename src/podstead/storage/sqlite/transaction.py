"""How is one batch of jobs run in one transaction, and what if a part of it fails?

A batch is applied and then committed, in two calls, since only the second waits for the disk. An
error of the disk fails the whole batch, and nothing of it stays. Any other error, such as a row
that breaks a constraint, is one job's own fault: the batch is undone and each job run alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from podstead.core.errors import DiskFull, StorageError
from podstead.storage.decision import UnsoundWrite, decide
from podstead.storage.disk_space import DiskSpace
from podstead.storage.records import Write
from podstead.storage.sqlite.apply import flush, load
from podstead.storage.sqlite.connection import WRITE_BUSY_S, Patience, open_writer
from podstead.storage.sqlite.row_changes import (
    Committed,
    RowChanges,
    read_row_count,
    row_changes,
)
from podstead.storage.state import Needs

Statements = Callable[[apsw.Connection], object]
"""Statements that join a batch; what they return is the job's result."""

Job = Write | Statements
Result = object
"""A write's CommitOutcome, what the statements returned, or a StorageError to raise."""

_OWN_FAULTS = (apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError, apsw.RangeError)


class WriteConnection:
    """The connection that batches are run on. One thread at a time may use it."""

    def __init__(
        self, database: Path, committed: Committed, space: DiskSpace, *, vfs: str | None = None
    ) -> None:
        """Open the database; batches of writes are told to ``committed``. Raises apsw.Error."""
        self._database = database
        self._space = space
        self._committed = committed
        self._applied: RowChanges | None = None
        self._vfs = vfs
        self._patience = Patience(0.0)
        self._connection = self._open()
        self._trusted = True

    def _open(self) -> apsw.Connection:
        return open_writer(self._database, self._patience, vfs=self._vfs)

    def close(self) -> None:
        """Undo what is not committed and close. Raises apsw.Error."""
        self._connection.close()

    def begin(self, *, wait_s: float) -> bool:
        """Begin a write transaction; False if others were writing all the time of ``wait_s``.

        Raises apsw.Error.
        """
        if not self._trusted:
            self._connection = self._open()
            self._trusted = True
        self._patience.wait_s = wait_s
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        return True

    def apply(self, jobs: Sequence[Job]) -> list[Result]:
        """Run the jobs in the transaction begun. Raises apsw.Error: then nothing is changed."""
        try:
            results, self._applied = _apply(self._connection, jobs)
        except BaseException:
            self._undo()
            raise
        return results

    def commit(self) -> None:
        """Make the transaction durable. Raises apsw.Error: then nothing is changed."""
        applied, self._applied = self._applied, None
        try:
            self._connection.execute("COMMIT")
        except BaseException:
            self._undo()
            raise
        if applied is not None:
            self._committed.append(applied)

    def run_again(self, jobs: Sequence[Job], error: apsw.Error) -> list[Result]:
        """Run the jobs once more if they failed for want of space and room can be made; else the
        results say that they failed. The room is for those that store no new content."""
        if not self._is_full(error):
            return failures(jobs, error)
        self._space.look_again()
        small = [job for job in jobs if not (isinstance(job, Write) and job.stores_content)]
        if not small or not self._make_room():
            return failures(jobs, _full(error))
        results = dict(zip(map(id, small), self.run(small, made_room=True), strict=True))
        return [results[id(job)] if id(job) in results else _full(error) for job in jobs]

    def _is_full(self, error: apsw.Error) -> bool:
        # Not all that fails for want of space says so: the log's index, for one.
        return isinstance(error, apsw.FullError) or (
            isinstance(error, apsw.IOError) and self._space.is_exhausted()
        )

    def _make_room(self) -> bool:
        """Give up the reserve, and have the log begin anew where it need not grow."""
        released = self._space.release()
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except apsw.Error:
            return released
        return True

    def run(self, jobs: Sequence[Job], *, made_room: bool = False) -> list[Result]:
        """Begin, apply and commit, waiting for other writers; failures are in the results."""
        try:
            if not self.begin(wait_s=WRITE_BUSY_S):
                return failures(jobs, None)
            results = self.apply(jobs)
            self.commit()
        except _OWN_FAULTS as error:
            return failures(jobs, error) if len(jobs) == 1 else self.run_each(jobs)
        except apsw.Error as error:
            if made_room:
                return failures(jobs, _full(error) if self._is_full(error) else error)
            return self.run_again(jobs, error)
        return results

    def run_each(self, jobs: Sequence[Job]) -> list[Result]:
        """Run each job in a transaction of its own."""
        return [result for job in jobs for result in self.run([job])]

    def _undo(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            # Not to be used again: what is not committed is undone by closing it.
            self._trusted = False
            self._connection.close(force=True)


def is_own_fault(error: apsw.Error) -> bool:
    """Whether the error is one job's own fault, so that the others may succeed without it."""
    return isinstance(error, _OWN_FAULTS)


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


def failures(jobs: Sequence[Job], cause: Exception | None) -> list[Result]:
    """The results of a batch of which nothing was done."""
    return [failure(cause) for _ in jobs]


def _apply(
    connection: apsw.Connection, jobs: Sequence[Job]
) -> tuple[list[Result], RowChanges | None]:
    """Run the writes, store what they change, and only then run statements.

    Statements must see what the writes of their batch did: giving a blob up, for one, must find
    that a write has taken it. The rows that they change are counted, not told.
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
) -> tuple[list[Result], RowChanges]:
    needs = Needs()
    for write in writes:
        needs.add(write)
    before = read_row_count(connection)
    state = load(connection, needs)
    outcomes: list[Result] = []
    for write in writes:
        try:
            outcomes.append(decide(write, state))
        except UnsoundWrite as error:
            outcomes.append(failure(error))
    flush(connection, state)
    return outcomes, row_changes(state, before=before, after=read_row_count(connection))
