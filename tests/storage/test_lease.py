"""Leases: one worker at a time, whatever the clocks of nodes say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podstead.app.adapters.system import SystemRandomness
from podstead.storage.record_store import LASTS_MS, Lease, RecordStore
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.support.clock import FakeClock

MINUTE_MS = 60_000
LASTS_S = LASTS_MS / 1000


class Nodes:
    """Workers with clocks of their own, all of which time passes for."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._clocks: list[FakeClock] = []

    def worker(self, *, ahead_ms: int = 0) -> Lease:
        clock = FakeClock(FakeClock.time_ms + ahead_ms)
        self._clocks.append(clock)
        return Lease("work", RecordStore(self._store, clock, SystemRandomness()))

    def advance(self, seconds: float) -> None:
        for clock in self._clocks:
            clock.advance(seconds)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    root = tmp_path / "root"
    prepare_root(root)
    store = SqliteStore(root)
    await store.open()
    yield Nodes(store)
    await store.close()


@pytest.mark.parametrize("ahead_ms", [-MINUTE_MS, 0, MINUTE_MS])
async def test_a_clock_that_is_wrong_by_a_minute_takes_no_lease_away(
    nodes: Nodes, ahead_ms: int
) -> None:
    holder, other = nodes.worker(), nodes.worker(ahead_ms=ahead_ms)
    assert await holder.hold()
    for _ in range(10):
        assert not await other.hold()
        nodes.advance(LASTS_S / 2)
        assert await holder.hold()
    assert holder.lasts_for(LASTS_MS - 1)
    assert not other.lasts_for(0)


@pytest.mark.parametrize("ahead_ms", [-MINUTE_MS, 0, MINUTE_MS])
async def test_a_lease_is_over_when_its_holder_has_not_renewed_it_for_its_time(
    nodes: Nodes, ahead_ms: int
) -> None:
    holder, other = nodes.worker(), nodes.worker(ahead_ms=ahead_ms)
    assert await holder.hold()
    assert not await other.hold()
    nodes.advance(LASTS_S - 1)
    assert not await other.hold()
    nodes.advance(1)
    assert not holder.lasts_for(0)
    assert await other.hold()
    assert not await holder.hold()


async def test_a_released_lease_is_free_at_once(nodes: Nodes) -> None:
    holder, other = nodes.worker(), nodes.worker()
    assert await holder.hold()
    await other.release()  # which is not its own
    assert not await other.hold()
    await holder.release()
    assert await other.hold()
