"""What does a worker do at its start, at intervals, and at its end?"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.operator_audit import log_acts_regularly
from podstead.app.adapters.stored_audit import store_regularly
from podstead.app.adapters.system import SystemRandomness
from podstead.app.git import GitServices, RepositorySweep
from podstead.app.live_updates import LiveUpdates
from podstead.core.clock import Clock
from podstead.core.errors import ServerTrouble
from podstead.resources.costly_work import CostlyWork
from podstead.resources.sharing.rules_index import RulesIndexBuilder
from podstead.resources.sharing.stored_answers import StoredAnswers
from podstead.storage.lease import Lease
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.web.application import Lifespan

if TYPE_CHECKING:
    from podstead.app.idp import Provider

logger = logging.getLogger("podstead.app")

SWEEP_PERIOD_S = 600
SWEEP_LEASE_MS = 180_000
"""How long a worker that has died keeps others from sweeping. A sweep may take longer: then two run
at once, and skip what the other removes."""
_LOOK_S = 60


@dataclass(slots=True)
class WorkerLifespan:
    """Opens what a worker uses, cleans up at intervals, and closes everything at the end."""

    store: Store
    live_updates: LiveUpdates
    foreign: ForeignDocuments
    clock: Clock
    provider: Provider | None
    git: GitServices | None
    repositories: RepositorySweep
    rules_index: RulesIndexBuilder
    stored_answers: StoredAnswers
    costly: CostlyWork
    among_nodes: bool = False
    """Whether other nodes share the records; then one worker of all nodes sweeps."""
    _sweeping: list[asyncio.Task[None]] = field(default_factory=list)

    def span(self) -> Lifespan:
        """The callbacks of the application's lifespan."""
        return Lifespan(self._start, self._stop, self.live_updates.drain)

    async def _start(self) -> None:
        await self.store.open()
        self.live_updates.start()
        if self.provider is not None:
            await asyncio.to_thread(self.provider.keys.maintain)
        if self.git is not None:
            await self.git.open()
        _settle_memory()
        records = RecordStore(self.store, self.clock, SystemRandomness())
        lease = Lease("sweep", records, lasts_ms=SWEEP_LEASE_MS) if self.among_nodes else None
        sweeping = sweep_regularly(self.store, self.repositories, self.provider, self.clock, lease)
        self._sweeping.append(asyncio.create_task(sweeping))
        if not await _has_step_completed(self.rules_index):
            self._sweeping.append(asyncio.create_task(build_index(self.rules_index)))
        self._sweeping.append(asyncio.create_task(log_acts_regularly(records)))
        if self.provider is not None:
            provider = self.provider
            storing = store_regularly(provider.audit.store, provider.slow_requests.store)
            self._sweeping.append(asyncio.create_task(storing))
            if provider.mail is not None:
                self._sweeping.append(asyncio.create_task(provider.mail.run()))

    async def _stop(self) -> None:
        for task in self._sweeping:
            task.cancel()
        await asyncio.gather(*self._sweeping, return_exceptions=True)
        await self.stored_answers.close()
        await self.live_updates.drain()
        if self.git is not None:
            await self.git.close()
        await self.repositories.close()
        await self.foreign.close()
        await self.costly.close()
        await self.store.close()


async def sweep_regularly(
    store: Store,
    repositories: RepositorySweep,
    provider: Provider | None,
    clock: Clock,
    lease: Lease | None = None,
) -> None:
    """Runs forever, also after errors; to be run in its own task. With a ``lease``, only its holder
    sweeps what nodes have in common."""
    next_ms = 0
    try:
        while True:
            try:
                is_ours = lease is None or await lease.hold()
                if lease is None or clock.now_ms() >= next_ms:
                    next_ms = clock.now_ms() + SWEEP_PERIOD_S * 1000
                    await store.sweep_own_files(now_ms=clock.now_ms())
                    await repositories.now()
                    if is_ours:
                        await store.sweep(now_ms=clock.now_ms())
                    if provider is not None:
                        await asyncio.to_thread(provider.keys.maintain)
            except ServerTrouble:  # for example, because the store is too busy
                logger.exception("The store could not be swept; it is tried again")
            await asyncio.sleep(SWEEP_PERIOD_S if lease is None else _LOOK_S)
    finally:
        if lease is not None:
            with contextlib.suppress(ServerTrouble):
                await lease.release()


async def build_index(rules_index: RulesIndexBuilder) -> None:
    """Record the access rules that are older than the index; runs until that is done."""
    while True:
        try:
            return await rules_index.run()
        except ServerTrouble:
            logger.exception("The index over access rules is incomplete; it will be continued")
        await asyncio.sleep(SWEEP_PERIOD_S)


async def _has_step_completed(rules_index: RulesIndexBuilder) -> bool:
    """Whether the index is complete after one step, as it is in a new root. Trouble does not keep
    the server from starting."""
    try:
        return await rules_index.step()
    except ServerTrouble:
        logger.exception("The index over access rules could not be read")
        return False


def _settle_memory() -> None:
    """Exclude what was loaded at the start from garbage collection, and collect less often.

    Requests leave no reference cycles unless they are refused, and a collection visits every
    object: with Python's default threshold of 700 it takes 5 to 10 % of the time of a write.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
