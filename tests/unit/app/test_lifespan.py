"""The upkeep that a worker does beside answering."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

import pytest

from podstead.app import lifespan
from podstead.app.adapters.system import SystemClock
from podstead.core.errors import Overloaded, StorageError
from podstead.features import WorkerFeature
from podstead.storage.protocol import Store


class _SweptStore:
    """A store whose first sweeps meet trouble."""

    def __init__(self) -> None:
        self.troubles = [StorageError("broken"), Overloaded("too many writes")]
        self.swept = asyncio.Event()

    async def sweep_own_files(self, *, now_ms: int) -> None:
        assert now_ms > 0

    async def sweep(self, *, now_ms: int) -> None:
        assert now_ms > 0
        if self.troubles:
            raise self.troubles.pop()
        self.swept.set()


class _SweptFeature(WorkerFeature):
    sweeps = 0

    async def sweep(self) -> None:
        self.sweeps += 1


async def test_sweeping_continues_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is busy or broken for a while is swept again when it is not."""
    monkeypatch.setattr(lifespan, "SWEEP_PERIOD_S", 0)
    store, clock = _SweptStore(), SystemClock()
    feature = _SweptFeature()
    sweeping = asyncio.create_task(
        lifespan.sweep_regularly(cast("Store", store), [feature], None, clock)
    )
    waiting = asyncio.create_task(store.swept.wait())
    await asyncio.wait({sweeping, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert store.swept.is_set()
    for task in (sweeping, waiting):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert feature.sweeps >= 1
