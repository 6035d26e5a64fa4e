"""One transaction for many writes, in one round trip if they find what the worker expects.

Then all of it is sent at once: begin, lock, compare, store, commit. Otherwise the first round trip
begins the transaction, locks and reads; the second stores what was decided and commits. After a
wrong expectation, that follows in the same way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

import psycopg
from msgspec.structs import replace
from psycopg.pq import TransactionStatus

from podstead.storage.decision import InvalidWrite, decide
from podstead.storage.postgresql.apply import Connection, Cursor, base_of, flush, load, lock
from podstead.storage.postgresql.connecting import pipelined
from podstead.storage.postgresql.errors import storage_error
from podstead.storage.postgresql.expectations import CHANGED, Expectations, SeenRows, require
from podstead.storage.records import Committed, Write
from podstead.storage.state import Needs, State
from podstead.storage.steps import Begin, Result

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
        needs = Needs()
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
        self, connection: Connection, jobs: Sequence[WriteJob], needs: Needs
    ) -> list[JobResult] | None:
        """Run writes in one round trip; ``None`` if something is not known, or was expected
        wrongly. The transaction has failed then, and must be ended."""
        seen = [job.seen for job in jobs if job.seen is not None]
        state = self._expectations.state(needs, seen, now_s=monotonic())
        if state is None:
            return None
        try:
            async with pipelined(connection):
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
        self, connection: Connection, jobs: Sequence[Job], needs: Needs
    ) -> list[JobResult]:
        writes = [job for job in jobs if isinstance(job, WriteJob)]
        state: State | None = None
        outcomes: list[JobResult] = []
        numbers: Cursor | None = None
        others: dict[int, object] = {}
        # Within the pipeline, only results that are needed are waited for: those of the reads, and
        # the confirmation of the commit, for which leaving the pipeline waits. (The driver's own
        # transactions wait for their beginning and their end as well.)
        async with pipelined(connection):
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
            outcomes.append(storage_error(error, "The change could not be stored"))
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
