"""What a worker does at its start, at intervals, and at its end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from podstead.app.adapters.audit import log_acts_regularly, store_regularly
from podstead.app.adapters.system import SystemRandomness
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


class WorkerLifespan:
    """Opens what a worker uses, cleans up at intervals, and closes everything at the end."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._rules_index = RulesIndexBuilder(
            index=services.rules_index, documents=services.documents, records=services.records
        )
        self._tasks: list[asyncio.Task[None]] = []

    def span(self) -> Lifespan:
        """The callbacks of the application's lifespan."""
        return Lifespan(self._start, self._stop, self._services.live_updates.drain)

    def _run(self, task: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(task))

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
        records = RecordStore(services.store, services.clock, SystemRandomness())
        lease = None
        if services.settings.database is not None:  # of the workers of all nodes, one sweeps
            lease = Lease("sweep", records, lasts_ms=SWEEP_LEASE_MS)
        self._run(
            sweep_regularly(services.store, services.features, provider, services.clock, lease)
        )
        if not await _has_step_completed(self._rules_index):
            self._run(build_index(self._rules_index))
        self._run(services.live.follow())
        self._run(log_acts_regularly(records))
        if provider is not None:
            self._run(store_regularly(provider.audit.store, provider.slow_requests.store))

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        services = self._services
        await services.stored_answers.close()
        await services.live_updates.drain()
        for feature in services.features:
            await feature.stop()
        await services.foreign.close()
        await services.documents.costly.close()
        await services.store.close()


async def sweep_regularly(
    store: Store,
    features: Sequence[WorkerFeature],
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
                    for feature in features:
                        await feature.sweep()
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
