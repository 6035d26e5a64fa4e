"""How is a planned write committed while others write, too?

A plan is made on a situation and committed with everything that it relied on. If any of that has
changed by then, the situation is read and the plan made again; nothing of the old plan is kept.

The situation may be one that is not stored yet: the one that the writes under way will leave. A
plan on it relies on those writes, so it fails if they fail. A refusal relies on nothing, and must
not rest on a state that may never exist: such a writer waits for those writes, and the decision is
made again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from podstead.core.errors import Conflict, Overloaded, QuotaExceeded, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.resources.documents import Superseded
from podstead.resources.outcome import Outcome, ResourceRequest
from podstead.resources.planning import Plan
from podstead.resources.target_state import TargetState
from podstead.resources.write_queues import WriteQueues, WriteTurn
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Committed, Metadata, NoMembers, OverQuota, ResourceKind

MAX_ATTEMPTS = 64
"""How often an operation is decided again. Writers of one process queue, so only writers of other
workers get in between, and each time that happens one of them has succeeded."""

Admit = Callable[[ResourceRequest, Metadata | None], Awaitable[TargetState]]
"""Reads the situation, passes the gate and checks the preconditions; raises RequestRefused. Takes
the state that a write under way will leave, which then replaces the stored one."""

MakePlan = Callable[[TargetState], Awaitable[Plan]]
"""Plans the write on an admitted situation; raises RequestRefused, and Superseded if what is
stored changed while it was read."""


class Commits:
    """Commits plans."""

    def __init__(self, *, store: ResourceStore, quota_bytes: int) -> None:
        """``quota_bytes`` bounds each storage; 0 for no bound."""
        self._store = store
        self._quota_bytes = quota_bytes
        self._turns = WriteQueues()

    async def commit(
        self,
        exchange: ResourceRequest,
        admitted: TargetState,
        admit: Admit,
        plan: MakePlan,
        *,
        turn_on: ResourcePath | None = None,
    ) -> Outcome:
        """Plan on the admitted situation and commit; admit and plan again while others change
        what was relied on.

        Writers of ``turn_on``, the target by default, wait for each other. Raises QuotaExceeded,
        Conflict for a container that is not empty, and Overloaded.
        """
        path = turn_on or exchange.operation.target
        looked: TargetState | None = admitted
        for _ in range(MAX_ATTEMPTS):
            async with self._turns.of(path) as turn:
                if turn.had_to_wait:  # what was read before the wait is likely to be out of date
                    looked = None
                planned = await _planned(exchange, turn, looked, admit, plan)
                outcome = None if planned is None else await self._try(exchange, turn, planned)
            if outcome is not None:
                return outcome
            # The turn was given up, so writers that waited come first: those who try again cannot
            # keep others out.
            looked = None
        raise Overloaded("Too many writes to this resource are in progress; try again")

    async def _try(
        self, exchange: ResourceRequest, turn: WriteTurn, planned: Plan
    ) -> Outcome | None:
        """Commit one plan; ``None`` if what it relied on had changed."""
        write = planned.with_preconditions(exchange.preconditions, quota_bytes=self._quota_bytes)
        after = planned.outcome.metadata
        # Only documents: access rules decide about the requests that follow, so nobody may build on
        # rules that are not committed.
        if after is not None and after.kind is ResourceKind.DOCUMENT:
            turn.pass_on(after)
        # Nothing may be awaited between these two: the writes that build on this one must come
        # after it in the store's queue.
        ended = await self._store.commit(write)
        if isinstance(ended, Committed):
            turn.stands()
            return planned.outcome
        if isinstance(ended, OverQuota):
            raise QuotaExceeded(
                used_bytes=ended.used_bytes,
                limit_bytes=self._quota_bytes,
                needed_bytes=ended.needed_bytes,
            )
        if isinstance(ended.precondition, NoMembers):
            raise Conflict("The container is not empty")
        return None


async def _planned(
    exchange: ResourceRequest,
    turn: WriteTurn,
    looked: TargetState | None,
    admit: Admit,
    plan: MakePlan,
) -> Plan | None:
    """The plan on the expected state if there is one, else on the stored state.

    ``looked`` is the latter as it was read before the turn, or ``None`` to read it again. Returns
    ``None`` if what is stored changed while it was read.
    """
    if turn.expected is not None:
        with suppress(RequestRefused, Superseded):
            return await plan(await admit(exchange, turn.expected))
        # Refused on a state that may never be stored, or planned on a body that is not stored yet:
        # decide again once the store holds the outcome.
        await turn.alone()
        looked = None
    try:
        return await plan(await admit(exchange, None) if looked is None else looked)
    except Superseded:
        return None
