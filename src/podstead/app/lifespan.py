"""What a worker does at its start, at intervals, and at its end."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.app.adapters import audit, system
from podstead.core.background import AGAIN_S, Background
from podstead.core.clock import Clock
from podstead.core.errors import ServerTrouble
from podstead.features import WorkerFeature
from podstead.resources.sharing.rules_index import RulesIndexBuilder
from podstead.storage.protocol import Store
from podstead.storage.record_store import Lease, RecordStore
from podstead.web.application import Lifespan

if TYPE_CHECKING:
    from podstead.app.provider import Provider
    from podstead.app.services import Services

logger = logging.getLogger("podstead.app")

SWEEP_PERIOD_S = 600
SWEEP_LEASE_MS = 180_000
"""How long a worker that has died keeps others from sweeping. A sweep may take longer: then two run
at once, and skip what the other removes."""
_LOOK_S = 60
_EVENTS_S = 1
"""How often events are stored."""


class WorkerLifespan:
    """Opens what a worker uses, cleans up at intervals, and closes everything at the end."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._rules_index = RulesIndexBuilder(
            index=services.rules_index, documents=services.documents, records=services.records
        )
        self._background: list[Background] = []

    def span(self) -> Lifespan:
        """The callbacks of the application's lifespan."""
        return Lifespan(self._start, self._stop, self._services.live_updates.drain)

    async def _start(self) -> None:
        services, provider = self._services, self._services.provider
        await services.store.open()
        await services.live.start()
        services.live_updates.start()
        if provider is not None:
            await asyncio.to_thread(provider.keys.maintain)
        for feature in services.features:
            await feature.start()
        _settle_memory()
        # Its own randomness: what requests draw does not depend on what happens in the background.
        records = RecordStore(services.store, services.clock, system.SystemRandomness())
        lease = None
        if services.settings.database is not None:  # of the workers of all nodes, one sweeps
            lease = Lease("sweep", records, lasts_ms=SWEEP_LEASE_MS)
        sweeping = Sweeping(services.store, services.features, provider, services.clock, lease)
        self._begin(sweeping.in_background())
        if not await _has_step_completed(self._rules_index):
            failed = "The index over access rules is incomplete"
            self._begin(Background(self._rules_index.run, logger, failed))
        self._begin(services.live.following(), at_once=False)
        self._begin(audit.logging_acts(records))
        if provider is not None:
            self._begin(_storing_events(provider))

    def _begin(self, background: Background, *, at_once: bool = True) -> None:
        background.start(at_once=at_once)
        self._background.append(background)

    async def _stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self._background))
        services = self._services
        await services.stored_answers.close()
        await services.live_updates.drain()
        for feature in services.features:
            await feature.stop()
        await services.foreign.close()
        await services.documents.costly.close()
        await services.store.close()


@dataclass(slots=True)
class Sweeping:
    """Sweeps regularly. With a ``lease``, only its holder sweeps what nodes have in common."""

    store: Store
    features: Sequence[WorkerFeature]
    provider: Provider | None
    clock: Clock
    lease: Lease | None = None
    _next_ms: int = 0

    def in_background(self) -> Background:
        """What does it."""
        return Background(
            self.sweep,
            logger,
            "The store could not be swept",
            every_s=SWEEP_PERIOD_S if self.lease is None else _LOOK_S,
            again_s=AGAIN_S,
            at_end=None if self.lease is None else self.lease.release,
        )

    async def sweep(self) -> None:
        """Sweep, if it is time. Raises ServerTrouble."""
        lease, clock = self.lease, self.clock
        is_ours = lease is None or await lease.hold()
        if lease is not None and clock.now_ms() < self._next_ms:
            return
        self._next_ms = clock.now_ms() + SWEEP_PERIOD_S * 1000
        await self.store.sweep_own_files(now_ms=clock.now_ms())
        for feature in self.features:
            await feature.sweep()
        if is_ours:
            await self.store.sweep(now_ms=clock.now_ms())
        if self.provider is not None:
            await asyncio.to_thread(self.provider.keys.maintain)


def _storing_events(provider: Provider) -> Background:
    """What stores the events that wait, the last ones at the end."""

    async def store() -> None:
        await provider.audit.store()
        await provider.slow_requests.store()

    failed = "Events could not be stored"
    return Background(store, logger, failed, every_s=_EVENTS_S, again_s=30, at_end=store)


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
