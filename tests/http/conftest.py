"""The whole application in this process, on a store of its own, with two pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.support.application import (
    BASE,
    Server,
    Start,
    running,
    with_two_pods,
)
from tests.support.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    """The clock of a server that is started with it."""
    return FakeClock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(root=tmp_path / "root", base_url=BASE, pod_creations_per_hour=0)


@pytest.fixture
async def server(start: Start) -> Server:
    return await start()


@pytest.fixture
async def start(settings: Settings) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def start_with(*, clock: Clock | None = None, **changes: Any) -> Server:  # noqa: ANN401
            changed = replace(settings, **changes)
            ensure_token_key(prepare_root(changed.root).keys)
            application = await stack.enter_async_context(running(changed, clock=clock))
            return await with_two_pods(application, host=urlsplit(changed.base_url).netloc)

        yield start_with


@pytest.fixture
async def store(server: Server, settings: Settings) -> AsyncIterator[SqliteStore]:
    """The server's store, as another worker has it."""
    other = SqliteStore(settings.root)
    await other.open()
    yield other
    await other.close()
