"""How does a planned write become fact although others write too?

A plan is made on a situation and committed with everything that it relied on. If any of that has
changed by then, the situation is looked at and the plan made again; nothing of the old one is kept.

The situation may be one that is not stored yet: what the writes under way are to leave. A plan on
it relies on them, so it fails with them. A refusal would rely on nothing, so nobody is refused by
what may never come to be: such a writer waits for those writes, and is decided about again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from podstead.core.errors import Conflict, Overloaded, QuotaExceeded, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.resources.documents import Superseded
from podstead.resources.outcome import Exchange, Outcome
from podstead.resources.planning import Plan
from podstead.resources.situation import Situation
from podstead.resources.turns import Turn, Turns
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Committed, Kind, Metadata, NoMembers, OverQuota

MAX_ATTEMPTS = 64
"""How often an operation is decided again. Writers of one process queue, so only writers of other
workers get in between, and each time that happens one of them has succeeded."""

Admit = Callable[[Exchange, Metadata | None], Awaitable[Situation]]
"""Looks, passes the gate and checks the preconditions; raises RequestRefused. Takes what a write
under way is to leave, to be seen in the place of what is stored."""

MakePlan = Callable[[Situation], Awaitable[Plan]]
"""Plans the write on an admitted situation; raises RequestRefused, and Superseded if what is
stored changed while it was read."""


class Commits:
    """Commits plans."""

    def __init__(self, *, store: ResourceStore, quota_bytes: int) -> None:
        """``quota_bytes`` bounds each storage; 0 for no bound."""
        self._store = store
        self._quota_bytes = quota_bytes
        self._turns = Turns()

    async def commit(
        self,
        exchange: Exchange,
        admitted: Situation,
        admit: Admit,
        plan: MakePlan,
        *,
        turn_on: ResourcePath | None = None,
    ) -> Outcome:
        """Plan on the admitted situation and commit; admit and plan again while others change
        what was relied on.

        Writers of ``turn_on``, which is the target unless told, wait for each other. Raises
        QuotaExceeded, Conflict for a container that is not empty, and Overloaded.
        """
        path = turn_on or exchange.operation.target
        looked: Situation | None = admitted
        for _ in range(MAX_ATTEMPTS):
            async with self._turns.of(path) as turn:
                if turn.had_to_wait:
                    looked = None
                planned = await _planned(exchange, turn, looked, admit, plan)
                outcome = None if planned is None else await self._try(exchange, turn, planned)
            if outcome is not None:
                return outcome
            looked = None
        raise Overloaded("The resource is being changed by many others")

    async def _try(self, exchange: Exchange, turn: Turn, planned: Plan) -> Outcome | None:
        """Commit one plan; ``None`` if what it relied on had changed."""
        write = planned.relying_on(exchange.reliances, quota_bytes=self._quota_bytes)
        after = planned.outcome.metadata
        # Access rules decide about what follows, so nobody goes on from those not yet in force.
        if after is not None and after.kind is Kind.DOCUMENT:
            turn.pass_on(after)
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
        if isinstance(ended.reliance, NoMembers):
            raise Conflict("The container is not empty")
        return None


async def _planned(
    exchange: Exchange, turn: Turn, looked: Situation | None, admit: Admit, plan: MakePlan
) -> Plan | None:
    """The plan on what is expected, else on what is stored, for which ``looked`` is good enough.

    ``None`` if what is stored changed while it was read.
    """
    if turn.expected is not None:
        with suppress(RequestRefused, Superseded):
            return await plan(await admit(exchange, turn.expected))
        await turn.alone()
        looked = None
    try:
        return await plan(await admit(exchange, None) if looked is None else looked)
    except Superseded:
        return None
