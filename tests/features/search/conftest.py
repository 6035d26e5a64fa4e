"""Servers whose index is brought up by tests, at the moments that they choose."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from podstead.app.adapters.root import prepared_root
from podstead.app.services import Services
from podstead.config import Settings
from podstead.features.search import indexer, worker
from podstead.features.search.indexer import Indexer
from tests.features.search.searched import Searched
from tests.support.application import running, with_two_pods
from tests.support.clock import FakeClock
from tests.support.postgresql import new_database


@pytest.fixture(params=["embedded", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
    """Settings of the engine."""
    if request.param == "embedded":
        yield {}
        return
    with new_database() as url:
        yield {"database": url}


@pytest.fixture
def clock() -> FakeClock:
    """Not in the future, when tokens that commands make would have ended."""
    return FakeClock(time_ms=time.time_ns() // 1_000_000)


@pytest.fixture
def own_settings(settings: Settings, engine: Mapping[str, str], tmp_path: Path) -> Settings:
    return settings.with_values(root=tmp_path / "searched", **engine)


@pytest.fixture
async def searched(
    own_settings: Settings, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Searched]:
    monkeypatch.setattr(indexer, "LOOK_S", 1e6)
    made: list[Indexer] = []

    class Noted(worker.SearchInWorker):
        def __init__(self, services: Services) -> None:
            super().__init__(services)
            made.append(self.indexer)

    monkeypatch.setattr(worker, "SearchInWorker", Noted)
    with prepared_root(own_settings):
        async with running(own_settings, clock=clock) as application:
            found = Searched(await with_two_pods(application), made)
            await found.catch_up()
            yield found
