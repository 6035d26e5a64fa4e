"""Fixtures: the whole application in this process, on a store of its own, with two pods."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.jose.tokens import SigningAlgorithm, SigningKeyPair
from podstead.storage.blobs.s3_location import parse_s3_location
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server, Start, running, with_two_pods
from tests.support.clock import FakeClock
from tests.support.engine_choice import CHOICE
from tests.support.peer import Peer
from tests.support.seaweedfs import bodies_of
from tests.support.usual_roots import UsualRoots, usual_settings

# Signing keys of the application in this process: each is generated once, and read once.
#
# To generate an RSA key, or to check its primes when it is read, takes longer than most tests.


class KeyPairs:
    """Key pairs that differ within a test; the next test gets the same ones.

    What is generated between tests, for a fixture of several, is given to nobody else.
    """

    def __init__(self) -> None:
        self._generate = SigningKeyPair.generate
        self._pairs: dict[SigningAlgorithm, list[SigningKeyPair]] = defaultdict(list)
        self._given: dict[SigningAlgorithm, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._in_test = False

    @contextlib.contextmanager
    def for_one_test(self) -> Iterator[None]:
        """Begin with the first ones again."""
        self._given.clear()
        self._in_test = True
        yield
        self._in_test = False

    def next(self, algorithm: SigningAlgorithm) -> SigningKeyPair:
        """What ``SigningKeyPair.generate`` returns."""
        if not self._in_test:
            return self._generate(algorithm)
        with self._lock:
            pairs, number = self._pairs[algorithm], self._given[algorithm]
            self._given[algorithm] += 1
            if number == len(pairs):
                pairs.append(self._generate(algorithm))
            return pairs[number]


@contextlib.contextmanager
def generated_once() -> Iterator[KeyPairs]:
    """Generate and read every key once while this lasts."""
    pairs = KeyPairs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SigningKeyPair, "generate", pairs.next)
        patch.setattr(SigningKeyPair, "load", functools.cache(SigningKeyPair.load))
        yield pairs


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
