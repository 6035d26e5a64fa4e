"""The engine on PostgreSQL, put to the engine suite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from cryptography.x509 import DNSName

from podstead.app.adapters.engine import prepare_engine
from podstead.app.adapters.root import prepared_root
from podstead.app.operator.backup import restore_backup
from podstead.config import Settings
from podstead.core.errors import RootUnusable, SchemaTooNew, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.postgresql import PostgresFacts, PostgresStore, is_migrated, migrate
from podstead.storage.postgresql.expectations import Expectations
from podstead.storage.protocol import Store
from podstead.storage.records import Version
from podstead.storage.root import prepare_folders
from podstead.storage.state import RequiredRows, ResourceRow, State
from tests.storage.engine_suite import Engine, EngineSuite
from tests.storage.engine_suite.copies import CopySuite
from tests.storage.engine_suite.listening import ListeningSuite
from tests.storage.engine_suite.parallel import ParallelSuite
from tests.storage.engine_suite.staging import StagingSuite
from tests.storage.engine_suite.transactions import TransactionSuite
from tests.storage.pooler import running_pooler
from tests.support.body_stores import FilesInRoot, KeptBodies, ObjectsInBucket
from tests.support.certificates import holder
from tests.support.postgresql import empty_database, new_database
from tests.support.server import run_command


class PostgresEngine:
    """One database, and the stores that a test opens on it."""

    def __init__(
        self, database: str, layout: RootLayout, stack: AsyncExitStack, kept: KeptBodies
    ) -> None:
        self._database = database
        self._layout = layout
        self._kept = kept
        self._stack = stack

    async def open_store(self) -> Store:
        store = PostgresStore(self._database, self._layout, bodies=self._kept.factory)
        await store.open()
        self._stack.push_async_callback(store.close)
        return store

    async def break_driver(self, store: Store) -> None:
        assert isinstance(store, PostgresStore)
        assert store._opened is not None
        await store._opened.reads.close()
        await store._opened.writes.close()

    async def lose_blobs(self) -> None:
        self._kept.lose_all()


@pytest.fixture
async def engine(tmp_path: Path, database: str) -> AsyncIterator[Engine]:
    empty_database(database)
    async with AsyncExitStack() as stack:
        layout = prepare_folders(tmp_path / "data")
        yield PostgresEngine(database, layout, stack, FilesInRoot(layout))


class TestPostgres(EngineSuite):
    """All tests come from the suite."""


class TestWithWrongExpectations(TransactionSuite, ParallelSuite):
    """Each batch is first decided on a state that is not the stored one."""

    @pytest.fixture
    async def engine(
        self, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[Engine]:
        empty_database(database)
        monkeypatch.setattr(Expectations, "state", _wrong_state)
        async with AsyncExitStack() as stack:
            layout = prepare_folders(tmp_path / "data")
            yield PostgresEngine(database, layout, stack, FilesInRoot(layout))


def _wrong_state(
    _: Expectations, needs: RequiredRows, *args: object, **kwargs: object
) -> State | None:
    """One in which everything exists already that can, with versions that nothing has."""
    if not needs.roots:
        return None
    resources: dict[ResourcePath, ResourceRow | None] = {
        path: ResourceRow(path, 1, Version("f"), "", 1, 1, 1, None, None, None, 0, None)
        for path in needs.paths
    }
    return State(resources, set(), {}, {}, set(), dict.fromkeys(needs.entries), 0)


class TestPostgresWithS3(StagingSuite, CopySuite):
    """The tests about large bodies, with these in S3."""

    @pytest.fixture
    async def engine(self, tmp_path: Path, database: str) -> AsyncIterator[Engine]:
        empty_database(database)
        async with AsyncExitStack() as stack:
            layout = prepare_folders(tmp_path / "data")
            yield PostgresEngine(database, layout, stack, ObjectsInBucket(layout))


@pytest.fixture(scope="module")
def pooled(database: str) -> Iterator[str]:
    """The same database by way of a pooler."""
    with running_pooler(database, holder(names=[DNSName("localhost")])) as url:
        yield url


@pytest.mark.needs("pgbouncer")
class TestBehindPooler(ParallelSuite, ListeningSuite):
    """Each transaction may run in another session."""

    @pytest.fixture
    async def engine(self, tmp_path: Path, database: str, pooled: str) -> AsyncIterator[Engine]:
        empty_database(database)
        async with AsyncExitStack() as stack:
            layout = prepare_folders(tmp_path / "data")
            yield PostgresEngine(pooled, layout, stack, FilesInRoot(layout))


def test_facts_are_kept_by_the_database() -> None:
    with new_database() as database:
        assert not is_migrated(database)
        migrate(database)
        assert is_migrated(database)
        facts = PostgresFacts(database)
        assert facts.read_fact("base_url") is None
        for value in ("https://pod.example", "https://other.example"):
            facts.write_fact("base_url", value)
            assert PostgresFacts(database).read_fact("base_url") == value


def test_a_database_of_a_newer_version_is_refused() -> None:
    with new_database() as database:
        migrate(database)
        with psycopg.connect(database) as connection:
            connection.execute("UPDATE schema_version SET version = version + 1")
        with pytest.raises(SchemaTooNew, match="newer version"):
            migrate(database)


def test_without_the_database_no_server_starts_on_its_data_root(
    tmp_path: Path, database: str
) -> None:
    settings, space = Settings(root=tmp_path, database=database), DiskSpace(tmp_path)
    prepare_engine(settings, space)
    prepare_engine(settings, space)
    with pytest.raises(RootUnusable, match="are in a PostgreSQL database"):
        prepare_engine(replace(settings, database=None), space)
    assert not RootLayout(tmp_path).database.exists()


def test_a_database_that_is_away_is_no_reason_to_give_up(tmp_path: Path) -> None:
    """With another code than that of RootUnusable, a service manager starts the server again."""
    away = f"postgresql://podstead@/podstead?host={tmp_path}"
    with pytest.raises(StorageError, match="connection"):
        prepare_engine(Settings(root=tmp_path, database=away), DiskSpace(tmp_path))


def start(settings: Settings) -> None:
    """What a node does before it serves."""
    with prepared_root(settings):
        pass


def test_a_database_is_prepared_over_one_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, open_one = 0, psycopg.connect

    def count(conninfo: str) -> psycopg.Connection:
        nonlocal opened
        opened += 1
        return open_one(conninfo)

    with new_database() as url:
        monkeypatch.setattr(psycopg, "connect", count)
        for _ in range(2):
            opened = 0
            start(Settings(root=tmp_path, database=url, idp=True))
            assert opened == 1
        monkeypatch.undo()
        assert PostgresFacts(url).read_fact("issuer") is not None, "it was committed"


@pytest.mark.feature("git")
def test_a_node_without_the_folders_of_the_others_does_not_start(tmp_path: Path) -> None:
    """It would not find what they store, and they not what it stores."""
    with new_database() as url:
        first = Settings(
            root=tmp_path / "first",
            database=url,
            base_url="https://pods.example",
            bodies=tmp_path / "bodies",
        ).with_values(git=True)
        start(first)
        start(first)
        second = first.with_values(root=tmp_path / "second", git=False)
        start(second)
        with pytest.raises(RootUnusable, match="start this one without --git"):
            start(second.with_values(git=True))
        (tmp_path / "second" / "git").symlink_to(tmp_path / "first" / "git")
        start(second.with_values(git=True))
        (tmp_path / "bodies").rename(tmp_path / "not mounted")
        with pytest.raises(RootUnusable, match="mount it there"), prepared_root(second):
            pass


@pytest.mark.feature("git")
def test_a_copy_has_folders_of_its_own(tmp_path: Path) -> None:
    with new_database() as source, new_database() as target:
        settings = Settings(
            root=tmp_path / "from", database=source, base_url="https://pods.example"
        ).with_values(git=True)
        start(settings)
        target_root = tmp_path / "to"
        places = ("--from", str(settings.root), source, "--to", str(target_root), target)
        copied = run_command("copy", *places)
        assert copied.returncode == 0, copied.stderr
        start(replace(settings, root=target_root, database=target))


def test_nodes_with_roots_of_their_own_need_a_place_for_bodies(tmp_path: Path) -> None:
    with new_database() as url:
        settings = Settings(root=tmp_path / "1", database=url, base_url="https://pods.example")
        start(settings)
        with pytest.raises(RootUnusable, match="keep them in S3"):
            start(replace(settings, root=tmp_path / "2"))


def test_a_backup_with_its_own_records_is_not_restored(tmp_path: Path, database: str) -> None:
    settings = Settings(root=tmp_path / "root", database=database)
    with pytest.raises(RootUnusable, match="without --database"):
        restore_backup(settings, tmp_path, on_step=lambda *_: None)
    assert not settings.root.exists()
