"""How does a planned write become fact although others write too?

A plan is made on a situation and committed with everything that it relied on. If any of that has
changed by then, the situation is looked at and the plan made again; nothing of the old one is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from podstead.core.errors import Conflict, Overloaded, QuotaExceeded
from podstead.core.identifiers import ResourcePath
from podstead.resources.documents import Superseded
from podstead.resources.outcome import Exchange, Outcome
from podstead.resources.planning import Plan
from podstead.resources.situation import Situation
from podstead.resources.turns import Turns
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Committed, NoMembers, OverQuota

MAX_ATTEMPTS = 64
"""How often an operation is decided again. Writers of one process queue, so only writers of other
workers get in between, and each time that happens one of them has succeeded."""

Admit = Callable[[Exchange], Awaitable[Situation]]
"""Looks, passes the gate and checks the preconditions; raises RequestRefused."""

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
        async with self._turns.of(path) as had_to_wait:
            situation = await admit(exchange) if had_to_wait else admitted
            for _ in range(MAX_ATTEMPTS):
                outcome = await self._try(exchange, situation, plan)
                if outcome is not None:
                    return outcome
                situation = await admit(exchange)
        raise Overloaded("The resource is being changed by many others")

    async def _try(
        self, exchange: Exchange, situation: Situation, plan: MakePlan
    ) -> Outcome | None:
        """Commit one plan; ``None`` if what it relied on had changed."""
        try:
            planned = await plan(situation)
        except Superseded:
            return None
        write = planned.relying_on(exchange.reliances, quota_bytes=self._quota_bytes)
        ended = await self._store.commit(write)
        if isinstance(ended, Committed):
            return planned.outcome
        if isinstance(ended, OverQuota):
            raise QuotaExceeded("The storage has no room for this")
        if isinstance(ended.reliance, NoMembers):
            raise Conflict("The container is not empty")
        return None
