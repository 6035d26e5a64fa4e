"""Whatever another node changes between the reading ahead and the commit of a write is noticed,
though the write is decided before it is sent."""

from __future__ import annotations

import asyncio
import secrets
from contextvars import Context
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.layout import RootLayout
from podstead.storage.migrations import read_migrations
from podstead.storage.postgresql import PostgresStore
from podstead.storage.postgresql.expectations import CONTENDED_S, Expectations, SeenRows
from podstead.storage.quota import fixed_charge
from podstead.storage.records import (
    Absent,
    AtVersion,
    Change,
    ChangeType,
    CommitOutcome,
    Committed,
    EntryId,
    Metadata,
    OverQuota,
    PodQuota,
    PodRecord,
    Precondition,
    Present,
    Put,
    PutEntry,
    ResourceKind,
    Version,
    VersionConflict,
    Write,
)
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore, migrate
from podstead.storage.state import RequiredRows, ResourceRow, State
from tests.storage.engine_suite.engine import (
    LARGE_BYTES,
    NOW_MS,
    STORAGE,
    commit,
    path,
    plant,
    put,
    read_present,
    stage_large,
    write,
)


@dataclass
class Pod:
    """A pod, and the stores of two nodes; the request is at the first."""

    first: PostgresStore
    second: PostgresStore
    name: str = field(default_factory=lambda: f"a{secrets.token_hex(6)}")

    def path(self, name: str) -> ResourcePath:
        return path(f"/{self.name}/{name}")

    async def create(self) -> None:
        record = PodRecord(self.name, self.path(""), "https://ann.example/#me", NOW_MS)
        names = ("", ".acl", "c/", "c/note", "empty/")
        puts = [put(self.path(name)) for name in names]
        await commit(self.first, write(*puts, records=[record]))

    async def version(self, name: str) -> Version:
        return (await read_present(self.second, self.path(name))).version

    async def request(self, wanted: Write, meanwhile: Write | None) -> CommitOutcome:
        """The outcome of a write that another one of the other node comes before."""
        names = ("c/note", "c/new", "empty/new", "c/", "empty/", "", ".acl")
        async with self.first.prefetch(map(self.path, names)):
            await self.first.read_pod(self.name)
            if meanwhile is not None:  # not as a part of this request
                other = commit(self.second, meanwhile)
                await asyncio.create_task(other, context=Context())
            return await self.first.commit(wanted)


@pytest.fixture
async def pod(two_stores: tuple[PostgresStore, PostgresStore]) -> Pod:
    pod = Pod(*two_stores)
    await pod.create()
    return pod


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> list[RequiredRows]:
    """The batches that were decided on what is not so."""
    noted: list[RequiredRows] = []
    were_wrong = Expectations.were_wrong

    def note(self: Expectations, needs: RequiredRows, *, now_s: float) -> None:
        noted.append(needs)
        were_wrong(self, needs, now_s=now_s)

    monkeypatch.setattr(Expectations, "were_wrong", note)
    return noted


@pytest.mark.parametrize(
    ("changed", "relied_on"),
    [
        (put(".acl", creates=False), AtVersion(path(".acl"), Version("0"))),
        (put("c/note", creates=False), AtVersion(path("c/note"), Version("0"))),
        (put("c/new"), Absent(path("c/new"))),
        ("empty/", Present(path("empty/"))),
        ("c/note", Present(path("c/note"))),
    ],
    ids=["rules", "version", "creation", "container", "deletion"],
)
async def test_a_precondition_that_another_node_breaks_does_not_hold(
    pod: Pod, wrong: list[RequiredRows], changed: Put | str, relied_on: Precondition
) -> None:
    assert isinstance(relied_on, AtVersion | Absent | Present)
    target = pod.path(relied_on.path)
    precondition: Precondition = Present(target)
    if isinstance(relied_on, AtVersion):
        precondition = AtVersion(target, await pod.version(relied_on.path))
    elif isinstance(relied_on, Absent):
        precondition = Absent(target)
    if isinstance(changed, str):
        meanwhile = write(deletes=[pod.path(changed)])
    else:
        meanwhile = write(put(pod.path(changed.path), b"of the other", creates=changed.creates))
    name = "empty/new" if relied_on.path == "empty/" else "c/new"
    wanted = write(put(pod.path(name), b"mine"), preconditions=[precondition])
    assert await pod.request(wanted, meanwhile) == VersionConflict(precondition)
    assert len(wrong) == 1


@pytest.mark.parametrize("limit", ["own", "default"])
async def test_a_quota_that_another_node_lowers_or_fills_holds(
    pod: Pod, wrong: list[RequiredRows], limit: str
) -> None:
    used_bytes = await pod.second.used_bytes(pod.name)
    if limit == "own":
        meanwhile = write(records=[PodQuota(pod.name, used_bytes)])
    else:
        meanwhile = write(put(pod.path("c/of-the-other"), b"x" * 10_000))
    wanted = write(put(pod.path("c/new"), b"x"), quota_bytes=used_bytes + 10_000)
    assert isinstance(await pod.request(wanted, meanwhile), OverQuota)
    assert len(wrong) == 1


async def test_what_does_not_matter_to_a_write_is_counted_nevertheless(
    pod: Pod, wrong: list[RequiredRows]
) -> None:
    used_bytes = await pod.second.used_bytes(pod.name)
    wanted, other = (write(put(pod.path(f"c/{name}"), b"12345")) for name in ("new", "two"))
    assert isinstance(await pod.request(wanted, other), Committed)
    assert len(wrong) == 1
    added = await pod.second.used_bytes(pod.name) - used_bytes
    assert added == 2 * (512 + 8 * len(pod.path("c/new")) + 5)
    assert len(await pod.second.list_members(pod.path("c/"), limit=10)) == 3
    names = [pod.path(f"c/{name}") for name in ("new", "two", "note")]
    await commit(pod.second, write(deletes=[*names, pod.path("c/")]))  # which counts the members


async def test_a_write_that_nobody_disturbs_is_as_expected(
    pod: Pod, wrong: list[RequiredRows]
) -> None:
    for number in range(3):
        wanted = write(put(pod.path("c/new"), b"%d" % number, creates=not number))
        assert isinstance(await pod.request(wanted, None), Committed)
        await commit(pod.first, write(put(pod.path(f"c/{number}"))))
    assert not wrong


# --- What is expected -------------------------------------------------------------------------

NOTE = path("/a/note")
NEEDS = RequiredRows(paths={NOTE}, roots={path("/a/")})


def seen_at(asked_s: float, version: str) -> SeenRows:
    note = Metadata(NOTE, ResourceKind.DOCUMENT, Version(version), "text/plain", 1, 2, 3)
    return SeenRows(asked_s, {NOTE: note}, {}, path("/a/"), 10, None)


def expected(expectations: Expectations, *seen: SeenRows, now_s: float = 9.0) -> str | None:
    """The version that is expected."""
    state = expectations.state(NEEDS, seen, now_s=now_s)
    row = None if state is None else state.resources[NOTE]
    return None if row is None else row.version


def test_the_newest_of_what_is_known_is_expected() -> None:
    expectations = Expectations()
    assert expected(expectations) is None
    assert expected(expectations, seen_at(2, "seen later"), seen_at(1, "seen")) == "seen later"
    row = ResourceRow(NOTE, 1, Version("left"), "text/plain", 1, 2, 3, None, None, None, 0, None)
    state = State({NOTE: row}, set(), {path("/a/"): 10}, {}, set(), {}, 0)
    expectations.keep(NEEDS, state, now_s=1.5)
    assert expected(expectations) == "left"
    assert expected(expectations, seen_at(1, "seen")) == "left"
    assert expected(expectations, seen_at(2, "seen later")) == "seen later"


def test_nothing_is_expected_of_a_storage_that_others_write_to() -> None:
    expectations = Expectations()
    expectations.were_wrong(NEEDS, now_s=1.0)
    assert expected(expectations, seen_at(2, "seen"), now_s=1.0) is None
    assert expected(expectations, seen_at(2, "seen"), now_s=1.0 + CONTENDED_S) == "seen"


# --- charges -----------------------------------------------------------------------------------
#
# What a storage is charged for is what it takes, also in databases of earlier versions.


BEFORE_CHARGES = 5


def used_pages_bytes(database: Path) -> int:
    """What the tables of a database take of its file."""
    connection = apsw.Connection(str(database))
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages: int = connection.execute("PRAGMA page_count").get
        free: int = connection.execute("PRAGMA freelist_count").get
        page_bytes: int = connection.execute("PRAGMA page_size").get
        return (pages - free) * page_bytes
    finally:
        connection.close()


@pytest.mark.parametrize("in_long_container", [False, True])
@pytest.mark.parametrize("length", [40, 200, 450, 500, 1000, 4000, 8000])
async def test_a_resource_is_charged_for_at_least_what_it_takes(
    tmp_path: Path, length: int, in_long_container: bool
) -> None:
    """Measured: rows, indexes and the change log, whose copies of a path multiply."""
    layout = prepare_root(tmp_path / "data")
    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    container = "/alice/c/"
    if in_long_container:
        container = f"/alice/{'c' * (length - 20)}/"
        await commit(store, write(put(container)))
    before = used_pages_bytes(layout.database)
    puts = [put(f"{container}{number:03d}".ljust(length, "x")) for number in range(100)]
    for start in range(0, 100, 10):
        some = puts[start : start + 10]
        changes = [
            Change(each.path, ChangeType.CREATE, "https://alice.example/#me") for each in some
        ]
        await commit(store, write(*some, changes=changes))
    await store.close()
    taken = used_pages_bytes(layout.database) - before
    charged = sum(fixed_charge(each.path) for each in puts)
    assert taken <= charged
    assert charged < 12 * taken  # the price of a long path does not depend on its container


async def test_a_database_of_an_earlier_version_is_charged_again(tmp_path: Path) -> None:
    """By the same rule; what was counted before does not matter."""
    layout = prepare_root(tmp_path / "data")
    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    pods = [PodRecord("alice", STORAGE, "w", 1), PodRecord("bob", path("/bob/"), "w", 1)]
    await commit(store, write(put("/bob/"), records=pods))
    names = ["/alice/c/a", "/alice/c/a.acl", "/alice/c/".ljust(481, "x"), "/bob/".ljust(5000, "b")]
    await commit(store, write(*[put(name, b"x" * len(name)) for name in names]))
    await commit(store, write(put("/alice/c/large", await stage_large(store))))
    expected = [await store.used_bytes(name) for name in ("alice", "bob")]
    await store.close()

    old = RootLayout(tmp_path / "old")
    old.root.mkdir()
    migrate(old.database, steps=read_migrations()[:BEFORE_CHARGES])
    connection = apsw.Connection(str(old.database))
    connection.execute("ATTACH ? AS new", (str(layout.database),))
    for table in ("resources", "bodies"):
        connection.execute(f"INSERT INTO {table} SELECT * FROM new.{table}")
    columns = "folded_name, name, root, owner, created_ms"
    connection.execute(f"INSERT INTO pods SELECT {columns} FROM new.pods")
    connection.execute("INSERT INTO storages VALUES ('/alice/', 7)")
    connection.execute("INSERT INTO garbage (blob, dropped_ms) VALUES ('0123', 1)")
    connection.close()

    opened = SqliteStore(prepare_root(old.root).root)
    await opened.open()
    assert [await opened.used_bytes(name) for name in ("alice", "bob")] == expected
    assert expected[0] > LARGE_BYTES
    await opened.sweep(now_ms=4_000_000_000_000)
    assert [await opened.used_bytes(name) for name in ("alice", "bob")] == expected
    await opened.close()


# --- Entries are counted up to a bound, by kind ------------------------------------------------


async def test_entries_are_counted_by_kind_up_to_a_bound(tmp_path: Path) -> None:
    prepare_root(tmp_path)
    store = SqliteStore(tmp_path)
    await store.open()
    try:
        names = ["a/1", "a/2", "a/3", "aa/1", "b/1"]
        records = tuple(PutEntry(EntryId(name), b"{}") for name in names)
        await store.commit(Write(Version("0" * 16), 1, records=records))
        counts = [
            await store.count_entries(kind, at_most=at_most)
            for kind, at_most in (("a", 10), ("a", 3), ("a", 2), ("aa", 10), ("c", 10))
        ]
        assert counts == [3, 3, 2, 1, 0]
    finally:
        await store.close()
