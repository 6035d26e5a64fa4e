"""Fixtures: the whole application in this process, on a store of its own, with two pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.storage.blobs.s3_location import parse_s3_location
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server, Start, running, with_two_pods
from tests.support.clock import FakeClock
from tests.support.engine_choice import CHOICE
from tests.support.peer import Peer
from tests.support.seaweedfs import bodies_of
from tests.support.signing_keys import KeyPairs, generated_once
from tests.support.usual_roots import UsualRoots, usual_settings


@pytest.fixture
def clock() -> FakeClock:
    """The clock of a server that is started with it."""
    return FakeClock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    root = tmp_path / "root"
    bodies = parse_s3_location(bodies_of(root)) if CHOICE.with_s3 else None
    return usual_settings(root, bodies=bodies)


@pytest.fixture
async def server(start: Start) -> Server:
    return await start()


@pytest.fixture(scope="session")
def key_pairs() -> Iterator[KeyPairs]:
    with generated_once() as pairs:
        yield pairs


@pytest.fixture(autouse=True)
def keys_of_this_test(key_pairs: KeyPairs) -> Iterator[None]:
    with key_pairs.for_one_test():
        yield


@pytest.fixture(scope="session")
def usual_roots(tmp_path_factory: pytest.TempPathFactory) -> UsualRoots:
    return UsualRoots.make(tmp_path_factory.mktemp("roots"))


@pytest.fixture
async def start(settings: Settings, usual_roots: UsualRoots) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def start_with(*, clock: Clock | None = None, **changes: Any) -> Server:  # noqa: ANN401
            changed = settings.with_values(**changes)
            owners = usual_roots.copy(changed, clock, changes)
            application = await stack.enter_async_context(running(changed, clock=clock))
            host = urlsplit(changed.base_url).netloc
            return await with_two_pods(application, owners, host=host)

        yield start_with


@pytest.fixture
async def store(server: Server, settings: Settings) -> AsyncIterator[SqliteStore]:
    """The server's store, as another worker has it."""
    other = SqliteStore(settings.root)
    await other.open()
    yield other
    await other.close()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A foreign server on 127.0.0.1."""
    peer = Peer()
    await peer.start()
    yield peer
    await peer.stop()
