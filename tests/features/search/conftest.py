"""Servers whose index is brought up by tests, at the moments that they choose."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from podstead.app.adapters.root import prepared_root
from podstead.app.services import Services
from podstead.config import Settings
from podstead.features.search import indexer, worker
from podstead.features.search.indexer import Indexer
from tests.support.application import BASE, Server, running, with_two_pods
from tests.support.asgi import Client
from tests.support.clock import FakeClock
from tests.support.postgresql import new_database


@dataclass
class Searched:
    """A server, and its index."""

    server: Server
    indexers: Sequence[Indexer] = field(default_factory=list)

    async def catch_up(self) -> None:
        await self.indexers[-1].catch_up()

    async def ask(
        self, client: Client, text: str, below: str = "/alice/", **parameters: str
    ) -> dict[str, Any]:
        """The answer to a question."""
        more = "".join(f"&{name}={value}" for name, value in parameters.items())
        answer = await client.get(f"/.search/in{below}?q={quote(text)}{more}")
        assert answer.status == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def paths(
        self, client: Client, text: str, below: str = "/alice/", **parameters: str
    ) -> list[str]:
        """The paths of what is found, in the order of the answer."""
        found = await self.ask(client, text, below, **parameters)
        return [each["id"].removeprefix(BASE) for each in found["items"]]


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
