"""The whole application in this process, on a store of its own, with two pods."""

from __future__ import annotations

import functools
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from podstead.app.adapters.keys import ensure_token_key
from podstead.app.adapters.provider_keys import KeyFolder
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.jose.signing import SigningKeyPair
from podstead.storage.blobs.s3_location import parse_s3_location
from podstead.storage.keys import KeyFiles
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
from tests.support.engine_choice import CHOICE
from tests.support.peer import Peer
from tests.support.seaweedfs import bodies_of


@pytest.fixture
def clock() -> FakeClock:
    """The clock of a server that is started with it."""
    return FakeClock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    root = tmp_path / "root"
    bodies = parse_s3_location(bodies_of(root)) if CHOICE.with_s3 else None
    return Settings(root=root, bodies=bodies, base_url=BASE, pod_creations_per_hour=0, workers=1)


@pytest.fixture
async def server(start: Start) -> Server:
    return await start()


@pytest.fixture(scope="session", autouse=True)
def _keys_read_once() -> Iterator[None]:
    """To read an RSA key is to check its primes, which takes longer than most tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SigningKeyPair, "load", functools.cache(SigningKeyPair.load))
        yield


@pytest.fixture(scope="session")
def provider_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys that a provider creates when a fake clock has not been advanced yet. To create them
    takes longer than most tests."""
    keys = tmp_path_factory.mktemp("keys")
    KeyFolder(KeyFiles(keys), FakeClock()).maintain()
    return keys / "provider"


@pytest.fixture
async def start(settings: Settings, provider_keys: Path) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def start_with(*, clock: Clock | None = None, **changes: Any) -> Server:  # noqa: ANN401
            changed = replace(settings, **changes)
            layout = prepare_root(changed.root)
            ensure_token_key(KeyFiles(layout.keys))
            keys = layout.keys / "provider"
            if changed.idp and clock == FakeClock() and not keys.exists():
                shutil.copytree(provider_keys, keys)
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


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A foreign server on 127.0.0.1."""
    peer = Peer()
    await peer.start()
    yield peer
    await peer.stop()
