"""What is read ahead for a request on PostgreSQL: never older than it, and used up in time."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

import psycopg
import pytest

from podstead.core.errors import StoreUnavailable
from podstead.core.identifiers import ResourcePath
from podstead.storage.dependencies import Dependencies
from podstead.storage.postgresql import PostgresStore, prefetch
from podstead.storage.postgresql.reads import Reader
from podstead.storage.records import DropPod, Metadata, PodRecord, TokenRecord, TokenRevocation
from tests.storage.engine_suite.engine import NOW_MS, commit, path, put, write


@dataclass
class Nodes:
    """The stores of two nodes, with a pod of which one has read everything ahead before."""

    first: PostgresStore
    second: PostgresStore
    name: str = field(default_factory=lambda: f"a{secrets.token_hex(6)}")

    @property
    def note(self) -> ResourcePath:
        return path(f"/{self.name}/note")

    @property
    def pod(self) -> PodRecord:
        return PodRecord(self.name, path(f"/{self.name}/"), "https://ann.example/#me", NOW_MS)

    @property
    def token(self) -> TokenRecord:
        return TokenRecord(self.name, self.name, self.pod.owner, NOW_MS // 1000, None)

    async def create(self) -> None:
        puts = (put(self.pod.root), put(self.note, b"first"))
        await commit(self.first, write(*puts, records=[self.pod, self.token]))

    async def replace(self) -> None:
        """Replace the document through the second node."""
        await commit(self.second, write(put(self.note, b"other", creates=False)))

    async def read(self) -> Metadata | None:
        """What the first node says about the document."""
        return (await self.first.read_metadata([self.note]))[self.note]

    async def stored(self) -> Metadata | None:
        """What is true about it."""
        return (await self.second.read_metadata([self.note]))[self.note]


@pytest.fixture
async def nodes(two_stores: tuple[PostgresStore, PostgresStore]) -> Nodes:
    both = Nodes(*two_stores)
    await both.create()
    return both


async def test_a_request_sees_what_another_node_has_committed_before_it(nodes: Nodes) -> None:
    for _ in range(3):
        async with nodes.first.prefetch([nodes.note]):
            assert await nodes.read() == await nodes.stored()
        await nodes.replace()


async def test_pods_and_tokens_are_kept_until_another_node_changes_one(nodes: Nodes) -> None:
    first, versions = nodes.first, set()
    for _ in range(2):
        async with first.prefetch([nodes.note]):
            versions.add(first.registries_version())
            assert await first.read_token(nodes.name) == nodes.token
            assert await first.read_pod(nodes.name.upper()) == nodes.pod
            assert await first.used_bytes(nodes.name) > 0
    assert len(versions) == 1
    await commit(nodes.second, write(records=[TokenRevocation(nodes.name, 5)]))
    async with first.prefetch([nodes.note]):
        assert first.registries_version() not in versions
        revoked = await first.read_token(nodes.name)
        assert revoked is not None
        assert revoked.revoked_s == 5
    await commit(nodes.second, write(records=[DropPod(nodes.name)]))
    async with first.prefetch([nodes.note]):
        assert await first.read_pod(nodes.name) is None


async def test_what_was_kept_before_a_failover_is_not_kept_after_it(
    nodes: Nodes, database: str
) -> None:
    """The new primary has lost the last transaction, and goes on from the one before."""
    select = "SELECT number FROM registry_changes"
    with psycopg.connect(database, autocommit=True) as connection:
        before = connection.execute(select).fetchone()
        other = PodRecord(f"{nodes.name}-lost", path(f"/{nodes.name}-lost/"), "https://x", NOW_MS)
        await commit(nodes.second, write(records=[other]))
        async with nodes.first.prefetch([nodes.note]):
            assert await nodes.first.read_token(nodes.name) == nodes.token
        connection.execute("UPDATE registry_changes SET number = %s", before)
    await commit(nodes.second, write(records=[TokenRevocation(nodes.name, 5)]))
    async with nodes.first.prefetch([nodes.note]):
        revoked = await nodes.first.read_token(nodes.name)
        assert revoked is not None
        assert revoked.revoked_s == 5


async def test_a_request_that_reads_again_asks_again(nodes: Nodes) -> None:
    """As it does when its commit has failed because another was faster."""
    async with nodes.first.prefetch([nodes.note]):
        before = await nodes.read()
        await nodes.replace()
        assert await nodes.read() == await nodes.stored() != before


async def test_nothing_is_used_after_a_second(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(prefetch, "monotonic", lambda: now_s[0])
    async with nodes.first.prefetch([nodes.note]):
        version = nodes.first.registries_version()
        await nodes.replace()
        now_s[0] = prefetch.VALID_S
        assert nodes.first.registries_version() != version
        assert await nodes.read() == await nodes.stored()


async def test_nothing_is_used_after_a_commit_of_the_request(nodes: Nodes) -> None:
    async with nodes.first.prefetch([nodes.note]):
        version = nodes.first.registries_version()
        await commit(nodes.first, write(put(f"/{nodes.name}/other", b"text")))
        assert nodes.first.registries_version() != version


async def test_a_task_that_outlives_the_request_asks_for_itself(nodes: Nodes) -> None:
    """Tasks inherit the context of the request that starts them."""
    replaced = asyncio.Event()

    async def read_later() -> bool:
        await replaced.wait()
        return await nodes.read() == await nodes.stored()

    async with nodes.first.prefetch([nodes.note]):
        task = asyncio.create_task(read_later())
    await nodes.replace()
    replaced.set()
    assert await task


async def dependencies(nodes: Nodes, *paths: ResourcePath) -> Dependencies | None:
    """Those of a request that reads the document, and then others."""
    async with nodes.first.prefetch([nodes.note]) as ahead:
        await nodes.read()
        for each in paths:
            await nodes.first.read_metadata([each])
        return ahead.dependencies()


async def is_confirmed(nodes: Nodes, found: Dependencies) -> bool:
    return await nodes.first.prefetch(found.metadata).confirms(found)


async def test_what_a_request_has_read_is_confirmed_until_any_of_it_changes(nodes: Nodes) -> None:
    other = path(f"/{nodes.name}/other")
    for change in (
        put(nodes.note, b"second", creates=False),
        put(other, b"text"),
        put(other, b"more", creates=False),
    ):
        found = await dependencies(nodes, other)
        assert found is not None
        assert list(found.metadata) == [nodes.note, other]
        assert await is_confirmed(nodes, found)
        await commit(nodes.second, write(put(f"/{nodes.name}/{secrets.token_hex(4)}", b"")))
        assert await is_confirmed(nodes, found)
        await commit(nodes.second, write(change))
        assert not await is_confirmed(nodes, found)


async def test_a_change_of_a_token_matters_to_those_who_asked_for_one(nodes: Nodes) -> None:
    public = await dependencies(nodes)
    async with nodes.first.prefetch([nodes.note]) as ahead:
        await nodes.read()
        nodes.first.registries_version()
        private = ahead.dependencies()
    assert public is not None
    assert private is not None
    assert await is_confirmed(nodes, private)
    await commit(nodes.second, write(records=[TokenRevocation(nodes.name, 5)]))
    assert not await is_confirmed(nodes, private)
    assert await is_confirmed(nodes, public)


async def test_what_the_statement_cannot_read_again_is_not_confirmed(nodes: Nodes) -> None:
    async with nodes.first.prefetch([nodes.note]) as ahead:
        assert ahead.dependencies() is None, "nothing was read"
        await nodes.read()
        assert ahead.dependencies() is not None
        await nodes.first.list_members(nodes.pod.root, limit=10)
        assert ahead.dependencies() is None
    async with nodes.first.prefetch([nodes.note]) as ahead:
        await nodes.read()
        await nodes.replace()
        await nodes.read()
        assert ahead.dependencies() is None, "two versions were read"
    assert ahead.dependencies() is None, "the request is over"


async def test_a_database_that_is_away_confirms_nothing(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await dependencies(nodes)
    assert found is not None
    asked = 0

    async def fail(*_: object) -> None:
        nonlocal asked
        asked += 1
        raise StoreUnavailable

    monkeypatch.setattr(Reader, "prefetch", fail)
    ahead = nodes.first.prefetch(found.metadata)
    assert not await ahead.confirms(found)
    with pytest.raises(StoreUnavailable):
        await ahead.__aenter__()
    assert asked == 1, "the request waits for the database once"
