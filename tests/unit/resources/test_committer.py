"""Writes of one resource build on each other, and never on one that fails."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from podstead.core.errors import Conflict, StorageError
from podstead.core.identifiers import ResourcePath, description_of
from podstead.core.identity import Identity
from podstead.core.operation import Operation
from podstead.resources.committer import Committer
from podstead.resources.outcome import Outcome, ResourceRequest
from podstead.resources.planning import Content, NewVersion, Plan, plan_delete, plan_put
from podstead.resources.reading import RenderingCache, RenderingKey
from podstead.resources.target_state import TargetState
from podstead.storage.document_reader import Superseded
from podstead.storage.record_store import RecordKind
from podstead.storage.records import (
    Absent,
    AtVersion,
    CommitOutcome,
    InlineBody,
    Metadata,
    Present,
    ResourceKind,
    Version,
    Write,
)
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SharedChanges, SqliteStore
from podstead.wac.effective import paths_to_read
from tests.storage.engine_suite.engine import (
    commit,
    content_of,
    new_version,
    plant,
    put,
    read,
    read_present,
    stage_large,
    write,
)
from tests.support.clock import FakeClock

DOCUMENT, ACL = ResourcePath("/alice/c/a"), ResourcePath("/alice/c/a.acl")

Before = Callable[[Write], Awaitable[None]]


class Unread:
    """A request body that nobody asks for: plans hold what is to be written."""

    announced = True
    size_bytes = None

    def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        raise AssertionError(limit_bytes)

    async def read(self, *, limit_bytes: int) -> bytes:
        raise AssertionError(limit_bytes)


class WatchedStore(SqliteStore):
    """Counts the commits under way, and does something before each."""

    before: Before | None = None
    pending = 0
    most_under_way = 0

    async def commit(self, write: Write) -> CommitOutcome:
        self.pending += 1
        self.most_under_way = max(self.most_under_way, self.pending)
        try:
            if self.before is not None:
                await self.before(write)
            return await super().commit(write)
        finally:
            self.pending -= 1


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[WatchedStore]:
    store = WatchedStore(prepare_root(tmp_path / "data").root)
    await store.open()
    await plant(store)
    store.most_under_way = 0
    yield store
    await store.close()


class Writers:
    """Many writers of one process; ``decided_on`` are the versions that plans were made on."""

    def __init__(self, store: WatchedStore, *observers: Observer) -> None:
        self._store = store
        self._committer = Committer(
            store,
            quota_bytes=lambda: 0,
            clock=FakeClock(),
            acl_listener=lambda *_, **__: None,
            observers=observers,
            extensions=observers,
        )
        self.decided_on: list[Version | None] = []

    async def write(
        self,
        target: ResourcePath,
        text: str,
        *,
        refuse: Callable[[Metadata | None], bool] = lambda _: False,
    ) -> Outcome:
        """Append a text; ``refuse`` tells whether to be refused on what is there."""

        async def plan(state: TargetState) -> Plan:
            existing = state.existing
            self.decided_on.append(None if existing is None else existing.version)
            if refuse(existing):
                raise Conflict("refused")
            content = Content("text/plain", InlineBody(text.encode()))
            return plan_put(state, content, NewVersion(new_version(), 1), None)

        return await self._commit(target, plan)

    async def delete(self, target: ResourcePath) -> Outcome:
        async def plan(state: TargetState) -> Plan:
            return plan_delete(state, NewVersion(new_version(), 1), None)

        return await self._commit(target, plan)

    async def _commit(
        self, target: ResourcePath, plan: Callable[[TargetState], Awaitable[Plan]]
    ) -> Outcome:
        request = ResourceRequest(Operation("PUT", target, Unread()), None)

        async def admit(_: ResourceRequest, expected: Metadata | None = None) -> TargetState:
            paths = (*paths_to_read(target), description_of(target))
            snapshot = await self._store.read_metadata(paths)
            if expected is not None:
                snapshot = {**snapshot, expected.path: expected}
            return TargetState(target, snapshot)

        return await self._committer.commit(request, await admit(request), admit, plan)


async def test_writers_of_one_document_go_on_from_one_another(store: WatchedStore) -> None:
    """Each is decided once, on what the one before is to leave, and logged as a change."""
    writers = Writers(store)
    outcomes = await asyncio.gather(*(writers.write(DOCUMENT, f"{n}") for n in range(20)))
    versions = [outcome.metadata and outcome.metadata.version for outcome in outcomes]
    assert writers.decided_on == [None, *versions[:-1]]
    assert store.most_under_way > 1
    assert await content_of(store, DOCUMENT) == b"19"
    changes = [
        row for row in await store.changes_after(0, limit=100) if row.change.path == DOCUMENT
    ]
    assert [row.version for row in changes] == versions


async def test_access_rules_are_in_force_before_the_next_step(
    store: WatchedStore,
) -> None:
    writers = Writers(store)
    await writers.write(DOCUMENT, "a")
    store.most_under_way = 0
    await asyncio.gather(*(writers.write(ACL, f"{n}") for n in range(5)))
    assert store.most_under_way == 1
    assert await content_of(store, ACL) == b"4"


async def test_when_a_write_fails_those_relying_on_it_are_decided_again(
    store: WatchedStore,
) -> None:
    writers, failed = Writers(store), list[Version]()

    async def fail_once(write: Write) -> None:
        if not failed:
            failed.append(write.version)
            await asyncio.sleep(0)
            raise StorageError("no")

    store.before = fail_once
    ended = await asyncio.gather(
        *(writers.write(DOCUMENT, f"{n}") for n in range(10)), return_exceptions=True
    )
    assert [type(end) for end in ended] == [StorageError] + [Outcome] * 9
    assert failed[0] in writers.decided_on, "the next was decided on what did not come to be"
    assert len(await store.changes_after(0, limit=100)) == 9


async def test_nobody_is_refused_by_what_does_not_come_to_be(store: WatchedStore) -> None:
    writers = Writers(store)

    async def fail_first(write: Write) -> None:
        if write.puts[0].body == InlineBody(b"first"):
            await asyncio.sleep(0)
            raise StorageError("no")

    store.before = fail_first
    first, second = await asyncio.gather(
        writers.write(DOCUMENT, "first"),
        writers.write(DOCUMENT, "second", refuse=lambda existing: existing is not None),
        return_exceptions=True,
    )
    assert isinstance(first, StorageError)
    assert isinstance(second, Outcome)
    assert len(writers.decided_on) == 3


async def test_who_is_refused_by_what_came_to_be_is_refused(store: WatchedStore) -> None:
    writers = Writers(store)
    first, second = await asyncio.gather(
        writers.write(DOCUMENT, "first"),
        writers.write(DOCUMENT, "second", refuse=lambda existing: existing is not None),
        return_exceptions=True,
    )
    assert isinstance(first, Outcome)
    assert isinstance(second, Conflict)
    assert await content_of(store, DOCUMENT) == b"first"


async def test_writers_of_other_processes_may_get_in_between(
    store: WatchedStore, tmp_path: Path
) -> None:
    writers = Writers(store)
    other = SqliteStore(tmp_path / "data")
    await other.open()
    intruders = [b"x"] * 3

    async def intrude(_: Write) -> None:
        if intruders:
            there = await read(other, DOCUMENT)
            await other.commit(write(put(DOCUMENT, intruders.pop(), creates=there is None)))

    store.before = intrude
    await asyncio.gather(*(writers.write(DOCUMENT, f"{n}") for n in range(20)))
    await other.close()
    assert len(await store.changes_after(0, limit=100)) == 20
    assert (await content_of(store, DOCUMENT)).isdigit()


async def test_workers_that_write_to_one_document_rarely_plan_in_vain(tmp_path: Path) -> None:
    """As many writers of each, which write again at once: each write is planned once, but for the
    few that meet before they know of each other."""
    shared = SharedChanges()
    root = prepare_root(tmp_path / "data").root
    stores = [WatchedStore(root, shared=shared) for _ in range(2)]
    for store in stores:
        await store.open()
    await plant(stores[0])
    await commit(stores[0], write(put(DOCUMENT)))
    workers = [Writers(store) for store in stores]

    async def write_often(writers: Writers) -> None:
        for number in range(8):
            await writers.write(DOCUMENT, f"{number}")

    await asyncio.gather(*(write_often(writers) for writers in workers for _ in range(8)))
    planned = sum(len(writers.decided_on) for writers in workers)
    committed = [row.version for row in await stores[0].changes_after(0, limit=1000)]
    for store in stores:
        await store.close()
    assert len(committed) == 2 * 8 * 8
    assert planned <= 1.25 * 2 * 8 * 8


async def test_a_deletion_among_writes_is_one_of_them(store: WatchedStore) -> None:
    """Whatever was written before is gone, and what is written after is made anew."""
    writers = Writers(store)
    before, deleted, after = await asyncio.gather(
        writers.write(DOCUMENT, "before"), writers.delete(DOCUMENT), writers.write(DOCUMENT, "new")
    )
    assert (before.location, deleted.metadata, after.location) == (DOCUMENT, None, DOCUMENT)
    assert await content_of(store, DOCUMENT) == b"new"


async def test_a_plan_on_what_was_superseded_is_made_again(store: WatchedStore) -> None:
    writers, tries = Writers(store), iter([True, False])

    def superseded(_: Metadata | None) -> bool:
        if next(tries):
            raise Superseded
        return False

    outcome = await writers.write(DOCUMENT, "a", refuse=superseded)
    assert outcome.metadata is not None
    assert outcome.metadata.kind is ResourceKind.DOCUMENT


async def test_what_a_write_is_to_leave_is_what_it_leaves(store: WatchedStore) -> None:
    """In every part: what others go on from is no other than what they would read."""
    for body in (InlineBody(b"a"), await stage_large(store), InlineBody(b"b")):
        state = TargetState(DOCUMENT, await store.read_metadata(paths_to_read(DOCUMENT)))
        plan = plan_put(state, Content("text/plain", body), NewVersion(new_version(), 5), None)
        await commit(store, plan.write)
        assert await read_present(store, DOCUMENT) == plan.outcome.metadata


class Noted(msgspec.Struct, frozen=True):
    """An empty record."""


NOTE = RecordKind("test-note", Noted)


class Observer:
    """Adds a record to each write, and notes what was committed."""

    def __init__(self, refuse: Exception | None = None) -> None:
        self.refuse = refuse
        self.committed_writes: list[Write] = []

    async def extended(self, agent: Identity | None, write: Write) -> Write:
        assert agent is None
        if self.refuse is not None:
            raise self.refuse
        return replace(write, records=(*write.records, NOTE.put(write.version, Noted())))

    def committed(self, agent: Identity | None, write: Write) -> None:
        assert agent is None
        self.committed_writes.append(write)


async def test_extensions_add_to_a_write_and_observers_learn_of_it_once_it_is_committed(
    store: WatchedStore,
) -> None:
    observer = Observer()
    outcome = await Writers(store, observer).write(DOCUMENT, "a")
    [committed] = observer.committed_writes
    assert outcome.metadata is not None
    assert committed.version == outcome.metadata.version
    assert await NOTE.read(store, committed.version, now_ms=0) is not None


async def test_an_extension_can_refuse_a_write(store: WatchedStore) -> None:
    observer = Observer(Conflict("kept for now"))
    with pytest.raises(Conflict):
        await Writers(store, observer).write(DOCUMENT, "a")
    assert observer.committed_writes == []
    assert (await store.read_metadata([DOCUMENT]))[DOCUMENT] is None


async def test_observers_learn_of_writes_of_trees(store: WatchedStore) -> None:
    observer = Observer()
    committer = Committer(
        store,
        quota_bytes=lambda: 0,
        clock=FakeClock(),
        acl_listener=lambda *_, **__: None,
        observers=[observer],
    )
    await Writers(store).write(DOCUMENT, "a")
    metadata = (await store.read_metadata([DOCUMENT]))[DOCUMENT]
    assert metadata is not None
    deletion = Write(
        new_version(),
        1,
        preconditions=(AtVersion(DOCUMENT, metadata.version),),
        deletes=(DOCUMENT,),
    )
    assert await committer.commit_tree(None, deletion) is not None
    assert await committer.commit_tree(None, deletion) is None
    assert [each.deletes for each in observer.committed_writes] == [(DOCUMENT,)]


# --- target state ------------------------------------------------------------------------------
#
# What exists around a target, and what can therefore be created (P-47, P-49, P-52, W-1).


POD = "/alice/"


def metadata(path: str) -> Metadata:
    kind = ResourceKind.CONTAINER if path.endswith("/") else ResourceKind.DOCUMENT
    if path == POD:
        kind = ResourceKind.STORAGE
    if path.endswith(".acl"):
        kind = ResourceKind.ACL
    return Metadata(ResourcePath(path), kind, Version("v"), "text/turtle", 0, 0, 0)


def state(target: str, *existing: str) -> TargetState:
    """A target, and all that exists around it beside the pod."""
    path = ResourcePath(target)
    there = {POD, *existing}
    return TargetState(
        path,
        {place: metadata(place) if place in there else None for place in paths_to_read(path)},
    )


@pytest.mark.parametrize(
    ("target", "existing"),
    [
        ("/alice/x", []),
        ("/alice/x/", []),
        ("/alice/a/b/c", []),
        ("/alice/a/b/c", ["/alice/a/"]),
        ("/alice/x.acl", ["/alice/x"]),
        ("/alice/x.meta", ["/alice/x"]),
        ("/alice/c/.acl", ["/alice/c/"]),
        ("/alice/x.acl.txt", []),
        ("/alice/acl/", []),
        ("/alice/.aclx/y", []),
    ],
)
def test_a_path_is_free_if_nothing_is_in_the_way(target: str, existing: list[str]) -> None:
    state(target, *existing).check_creatable()


@pytest.mark.parametrize(
    ("target", "existing"),
    [
        ("/alice/x", ["/alice/x/"]),  # P-47
        ("/alice/x/", ["/alice/x"]),
        ("/alice/x/y", ["/alice/x"]),  # P-49
        ("/alice/x/y/z/", ["/alice/x"]),
        ("/alice/x.acl/", []),  # P-52: the ACL of x must be able to stand there
        ("/alice/x.meta/", []),
        ("/alice/.acl/", []),
        ("/alice/x.acl/y", []),
        ("/alice/c/.meta/y/z", ["/alice/c/"]),
        ("/alice/x.acl", []),  # the ACL of nothing
        ("/alice/c/.acl", []),
        ("/alice/x.acl.acl", ["/alice/x", "/alice/x.acl"]),  # W-1
        ("/alice/x.acl.meta", ["/alice/x", "/alice/x.acl"]),
        ("/alice/x.meta.acl", ["/alice/x", "/alice/x.meta"]),
    ],
)
def test_a_path_is_not_free_if_something_exists_or_may_be_created_there(
    target: str, existing: list[str]
) -> None:
    with pytest.raises(Conflict):
        state(target, *existing).check_creatable()


def test_what_a_creation_would_make_and_what_it_relies_on() -> None:
    """C-2: outermost first; and each must still be absent, in both slash forms, at the commit."""
    made = state("/alice/a/b/c", "/alice/")
    assert made.missing_containers() == ("/alice/a/", "/alice/a/b/")
    preconditions = set(made.creation_preconditions())
    for path in ("/alice/a/b/c", "/alice/a/b/", "/alice/a/"):
        assert Absent(ResourcePath(path)) in preconditions
        twin = path[:-1] if path.endswith("/") else f"{path}/"
        assert Absent(ResourcePath(twin)) in preconditions
    assert Present(ResourcePath(POD)) in preconditions


def test_a_container_and_its_description_are_stored_in_one_place() -> None:
    """C-30: a document's description has its own."""
    described = state("/alice/c/.meta", "/alice/c/")
    assert described.stored_path == "/alice/c/"
    assert described.existing is not None
    apart = state("/alice/x.meta", "/alice/x")
    assert apart.stored_path == "/alice/x.meta"
    assert apart.existing is None


@pytest.mark.parametrize(
    ("target", "existing", "expected"),
    [
        ("/alice/x.meta", ["/alice/x"], True),
        ("/alice/c/.meta", ["/alice/c/"], True),
        ("/alice/x.meta", [], False),
        ("/alice/x", ["/alice/x"], False),
        ("/alice/x.acl", ["/alice/x"], False),
        ("/alice/x.acl.meta", ["/alice/x", "/alice/x.acl"], False),
    ],
)
def test_only_what_exists_and_is_not_an_auxiliary_can_be_described(
    target: str, existing: list[str], expected: bool
) -> None:
    assert state(target, *existing).is_possible_description is expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [("/alice/", True), ("/alice/.meta", True), ("/alice/.acl", False), ("/alice/c/", False)],
)
def test_a_storage_is_one_at_both_urls_of_its_triples(target: str, expected: bool) -> None:
    """C-25, C-30."""
    assert state(target, "/alice/c/").is_storage_root is expected


def test_not_having_looked_is_not_absence() -> None:
    """Trouble never reads as absence."""
    with pytest.raises(StorageError):
        state("/alice/x").metadata(ResourcePath("/bob/"))


# --- Converted documents are cached within the memory limit ------------------------------------


CAPACITY_BYTES = 1 << 18


def key(number: int, version: str = "v", media_type: str = "text/turtle") -> RenderingKey:
    return f"/alice/private/document-{number}.ttl", version, media_type


def test_a_rendering_is_that_of_its_path_version_and_type() -> None:
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    kept = key(1)
    renderings.put(kept, b"content")
    assert renderings.get(kept) == b"content"
    for other in (key(2), key(1, "w"), key(1, "v", "application/ld+json")):
        assert renderings.get(other) is None


@pytest.mark.parametrize("size_bytes", [0, 12, 500, CAPACITY_BYTES // 8])
def test_the_memory_taken_stays_within_what_it_may_be(size_bytes: int) -> None:
    """Also of documents that are empty, of which there may be any number."""
    tracemalloc.start()
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    for number in range(5000):
        renderings.put(key(number), bytes(bytearray(size_bytes)))
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken_bytes < CAPACITY_BYTES * 1.2
    assert renderings.get(key(4999)) is not None
    assert renderings.get(key(0)) is None


def test_a_new_version_takes_the_place_of_the_old_one() -> None:
    """Whoever lists a container in which much is written evicts nobody else's renderings."""
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    renderings.put(key(0), b"of another resource")
    for version in range(100):
        renderings.put(key(1, f"v{version}"), bytes(renderings.largest_bytes))
    assert renderings.get(key(1, "v98")) is None
    assert renderings.get(key(1, "v99")) is not None
    assert renderings.get(key(0)) is not None


def test_recently_used_entries_stay() -> None:
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    renderings.put(key(0), b"often asked for")
    for number in range(1, 5000):
        renderings.put(key(number), b"x" * 100)
        assert renderings.get(key(0)) == b"often asked for"


def test_of_what_would_push_out_too_many_only_the_last_is_kept() -> None:
    """So that whoever asks for it again at once does not have it made again."""
    renderings = RenderingCache(capacity_bytes=CAPACITY_BYTES)
    renderings.put(key(1), b"x" * renderings.largest_bytes)
    for number in (2, 3):
        renderings.put(key(number), b"x" * (CAPACITY_BYTES + 1))
        assert renderings.get(key(number)) is not None
        assert renderings.get(key(number, "w")) is None
    assert renderings.get(key(1)) is not None
    assert renderings.get(key(2)) is None


def test_without_capacity_nothing_is_kept() -> None:
    renderings = RenderingCache(capacity_bytes=0)
    for content in (b"", b"x"):
        renderings.put(key(1), content)
        assert renderings.get(key(1)) is None
