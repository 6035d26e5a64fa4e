"""The engine on SQLite, put to the engine suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteFacts, SqliteStore
from tests.storage.engine_suite import Engine, EngineSuite
from tests.storage.engine_suite.contract import ContractSuite
from tests.storage.engine_suite.copies import CopySuite
from tests.storage.engine_suite.parallel import ParallelSuite
from tests.storage.engine_suite.staging import StagingSuite
from tests.storage.engine_suite.trouble import TroubleSuite
from tests.support.body_stores import FilesInRoot, KeptBodies, ObjectsInBucket


class SqliteEngine:
    """One data root, and the stores that a test opens on it."""

    def __init__(self, layout: RootLayout, stack: AsyncExitStack, kept: KeptBodies) -> None:
        self._layout = layout
        self._stack = stack
        self._kept = kept

    async def open_store(self) -> Store:
        store = SqliteStore(self._layout.root, bodies=self._kept.factory)
        await store.open()
        self._stack.push_async_callback(store.close)
        return store

    async def break_driver(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        assert store._opened is not None
        store._opened.reader._connection.close(force=True)
        store._opened.ephemeral._connection.close(force=True)
        store._opened.writer._connection._connection.close(force=True)

    async def lose_blobs(self) -> None:
        self._kept.lose_all()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with AsyncExitStack() as stack:
        layout = prepare_root(tmp_path / "data")
        yield SqliteEngine(layout, stack, FilesInRoot(layout))


class TestSqlite(EngineSuite):
    """All tests come from the suite."""


class TestSqliteWithS3(ContractSuite, StagingSuite, CopySuite, ParallelSuite, TroubleSuite):
    """The tests in which there are large bodies, with these in S3."""

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        async with AsyncExitStack() as stack:
            layout = prepare_root(tmp_path / "data")
            yield SqliteEngine(layout, stack, ObjectsInBucket(layout))


def test_facts_are_kept_by_the_database(tmp_path: Path) -> None:
    facts = SqliteFacts(prepare_root(tmp_path).database)
    assert facts.read_fact("base_url") is None
    facts.write_fact("base_url", "https://pod.example")
    assert facts.read_fact("base_url") == "https://pod.example"
    facts.write_fact("base_url", "https://other.example")
    assert SqliteFacts(prepare_root(tmp_path).database).read_fact("base_url") == (
        "https://other.example"
    )
