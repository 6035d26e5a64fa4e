"""Whatever another node changes between the reading ahead and the commit of a write is noticed,
though the write is decided before it is sent."""

from __future__ import annotations

import asyncio
import secrets
from contextvars import Context
from dataclasses import dataclass, field

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.postgresql import PostgresStore
from podstead.storage.postgresql.expectations import CONTENDED_S, Expectations, SeenRows
from podstead.storage.records import (
    Absent,
    AtVersion,
    CommitOutcome,
    Committed,
    Metadata,
    OverQuota,
    PodQuota,
    PodRecord,
    Precondition,
    Present,
    Put,
    ResourceKind,
    Version,
    VersionConflict,
    Write,
)
from podstead.storage.state import Needs, ResourceRow, State
from tests.storage.engine_suite.engine import NOW_MS, commit, path, put, read_present, write


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
def wrong(monkeypatch: pytest.MonkeyPatch) -> list[Needs]:
    """The batches that were decided on what is not so."""
    noted: list[Needs] = []
    were_wrong = Expectations.were_wrong

    def note(self: Expectations, needs: Needs, *, now_s: float) -> None:
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
    pod: Pod, wrong: list[Needs], changed: Put | str, relied_on: Precondition
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
    pod: Pod, wrong: list[Needs], limit: str
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
    pod: Pod, wrong: list[Needs]
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


async def test_a_write_that_nobody_disturbs_is_as_expected(pod: Pod, wrong: list[Needs]) -> None:
    for number in range(3):
        wanted = write(put(pod.path("c/new"), b"%d" % number, creates=not number))
        assert isinstance(await pod.request(wanted, None), Committed)
        await commit(pod.first, write(put(pod.path(f"c/{number}"))))
    assert not wrong


# --- What is expected -------------------------------------------------------------------------

NOTE = path("/a/note")
NEEDS = Needs(paths={NOTE}, roots={path("/a/")})


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
