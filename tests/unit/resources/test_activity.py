"""The change log for people: who may see what of it, and how much of it is read."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import AccessDenied, NotAuthenticated
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.resources.activity import (
    STEP_ROWS,
    ActivityStore,
    ChangeAuthors,
    ChangeFilter,
    ChangeKind,
    MemberAudiences,
    PodActivity,
)
from podstead.resources.archives import _ZipWriter
from podstead.resources.importing import pod_archive
from podstead.resources.importing.pod_archive import Malformed, graph_entities
from podstead.storage.protocol import ChangeSignal
from podstead.storage.records import (
    Change,
    ChangeType,
    LoggedChange,
    Metadata,
    ResourceKind,
    Version,
)
from podstead.wac.decision import Audience
from tests.support.wac_world import BOB, CAROL, OWNER, World, identity, path, pod, rule

POD = path("/pod/")


class LoggedWorld(World):
    """A world with a change log; rows before ``forgotten`` have left it."""

    def __init__(self, world: World) -> None:
        self.__dict__.update(world.__dict__)
        self.rows: list[LoggedChange] = []
        self.steps = 0

    def log(
        self,
        name: str,
        activity: ChangeType = ChangeType.UPDATE,
        *,
        agent: str | None = OWNER,
        version: str = "",
    ) -> None:
        sequence = len(self.rows) + 1
        self.rows.append(
            LoggedChange(
                sequence,
                Change(path(name), activity, agent),
                Version(version or str(sequence)),
                at_ms=sequence * 1000,
            )
        )

    def listen(self) -> ChangeSignal:
        raise NotImplementedError

    async def newest_sequence(self) -> int:
        return len(self.rows)

    async def changes_after(self, sequence: int, *, limit: int) -> list[LoggedChange]:
        return self.rows[sequence : sequence + limit]

    async def changes_before(
        self, sequence: int, *, first: int, below: ResourcePath, limit: int
    ) -> list[LoggedChange]:
        self.steps += 1
        wanted = [
            row
            for row in reversed(self.rows)
            if first <= row.sequence < sequence and row.change.path.startswith(below)
        ]
        return wanted[:limit]


@pytest.fixture
def world() -> LoggedWorld:
    logged = LoggedWorld(pod())
    owner = f"acl:agent <{OWNER}>"
    logged.acl("/pod/", rule(owner, "RWC", "./", default=True))
    return logged


def activity(world: LoggedWorld, **options: int) -> PodActivity:
    store: ActivityStore = world
    return PodActivity(store=store, gate=world.gate, **options)


async def names(world: LoggedWorld, agent: str | None, wanted: ChangeFilter) -> list[str]:
    who = None if agent is None else identity(agent)
    page = await activity(world).page(who, wanted, limit=100)
    return [each.path for each in page.changes]


async def test_control_of_the_storage_is_needed(world: LoggedWorld) -> None:
    world.acl("/pod/", rule(f"acl:agent <{BOB}>", "RW", "./", default=True))
    with pytest.raises(AccessDenied):
        await names(world, BOB, ChangeFilter(below=POD))
    with pytest.raises(NotAuthenticated):
        await names(world, None, ChangeFilter(below=path("/pod/deep/er/")))


async def test_what_others_keep_for_themselves_is_not_shown(world: LoggedWorld) -> None:
    # Control of the storage does not mean Read or Control everywhere below it.
    world.acl("/pod/", rule(f"acl:agent <{BOB}>", "RC", "./", default=True))
    world.store("/pod/open")
    world.store("/pod/closed")
    world.acl("/pod/closed", rule(f"acl:agent <{OWNER}>", "RW", "closed"))
    world.store("/pod/readable")
    world.acl("/pod/readable", rule(f"acl:agent <{BOB}>", "R", "readable"))
    for name in ("/pod/open", "/pod/closed", "/pod/readable", "/pod/readable.acl"):
        world.log(name)
    assert await names(world, BOB, ChangeFilter(below=POD)) == ["/pod/readable", "/pod/open"]
    assert len(await names(world, OWNER, ChangeFilter(below=POD))) == 4


async def test_rules_that_go_with_their_resource_are_no_change_of_their_own(
    world: LoggedWorld,
) -> None:
    world.log("/pod/a", ChangeType.DELETE, version="v")
    world.log("/pod/a.acl", ChangeType.DELETE, version="v")
    world.log("/pod/a.meta", ChangeType.DELETE, version="v")
    world.log("/pod/b.acl", ChangeType.CREATE)
    world.log("/pod/c", ChangeType.UNCHANGED)
    page = await activity(world).page(identity(OWNER), ChangeFilter(below=POD), limit=10)
    found = [(each.path, each.kind) for each in page.changes]
    assert found == [("/pod/b", ChangeKind.ACCESS), ("/pod/a", ChangeKind.DELETED)]


async def test_parts_follow_each_other_without_gap_or_repetition(world: LoggedWorld) -> None:
    for number in range(25):
        world.log(f"/pod/{number}")
        world.log(f"/other/{number}")
    found: list[str] = []
    before = None
    for _ in range(10):
        page = await activity(world).page(
            identity(OWNER), ChangeFilter(below=POD), before=before, limit=4
        )
        assert len(page.changes) <= 4
        found += [each.path for each in page.changes]
        before = page.before
        if before is None:
            break
    assert found == [f"/pod/{number}" for number in range(24, -1, -1)]


async def test_one_page_examines_a_bounded_part_of_the_log(world: LoggedWorld) -> None:
    world.log("/pod/old")
    for number in range(3 * STEP_ROWS):
        world.log(f"/other/{number}")
    bounded = activity(world, max_rows=2 * STEP_ROWS)
    page = await bounded.page(identity(OWNER), ChangeFilter(below=POD), limit=10)
    assert page.changes == []
    assert page.before is not None
    assert world.steps == 2
    page = await bounded.page(
        identity(OWNER), ChangeFilter(below=POD), before=page.before, limit=10
    )
    assert [each.path for each in page.changes] == ["/pod/old"]
    assert page.before is None


async def test_times_bound_what_is_read(world: LoggedWorld) -> None:
    for number in range(1, 11):
        world.log(f"/pod/{number}")
    wanted = ChangeFilter(below=POD, since_ms=3_000, until_ms=6_000)
    assert await names(world, OWNER, wanted) == ["/pod/5", "/pod/4", "/pod/3"]


async def test_what_is_moved_is_one_change_with_everything_in_it(world: LoggedWorld) -> None:
    """However many rows it has: also if they are read in several steps."""
    world.store("/pod/y/")
    many = STEP_ROWS
    world.log("/pod/before")
    for name in ("", *(f"a{number}" for number in range(many))):
        world.log(f"/pod/y/{name}", ChangeType.CREATE, version="move")
    for name in (*(f"a{number}" for number in range(many)), ""):
        world.log(f"/pod/x/{name}", ChangeType.DELETE, version="move")
    world.log("/pod/x/.acl", ChangeType.DELETE, version="move")
    world.log("/pod/after")
    log = activity(world)
    found = await log.page(identity(OWNER), ChangeFilter(POD), limit=50)
    shown = [(each.path, each.kind, each.origin) for each in found.changes]
    assert shown == [
        ("/pod/after", ChangeKind.CHANGED, None),
        ("/pod/y/", ChangeKind.MOVED, "/pod/x/"),
        ("/pod/before", ChangeKind.CHANGED, None),
    ]
    first = await log.page(identity(OWNER), ChangeFilter(POD), limit=2)
    assert [each.kind for each in first.changes] == [ChangeKind.CHANGED, ChangeKind.MOVED]
    rest = await log.page(identity(OWNER), ChangeFilter(POD), before=first.before, limit=2)
    assert [each.path for each in rest.changes] == ["/pod/before"]


# --- archive stream ----------------------------------------------------------------------------
#
# The archive as a stream: nothing is collected, and it is whole beyond the limits of old ZIP.


MIB = 1024 * 1024
PIECE = bytes(range(256)) * 1024


class Body:
    """A stored body that is made while it is read."""

    content = None
    file_path = None

    def __init__(self, pieces: int) -> None:
        self.size_bytes = pieces * len(PIECE)
        self._pieces = pieces

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        assert (start, end) == (0, None)
        for _ in range(self._pieces):
            yield PIECE


def metadata(content_type: str, modified_ms: int = 0) -> Metadata:
    path, kind = ResourcePath("/alice/x"), ResourceKind.DOCUMENT
    return Metadata(path, kind, Version("1"), content_type, 0, modified_ms, 0)


@pytest.mark.parametrize("content_type", ["text/plain", "video/mp4"])
async def test_memory_does_not_grow_with_the_files(content_type: str) -> None:
    writer = _ZipWriter()
    tracemalloc.start()
    try:
        sent = 0
        for number in range(4):
            async for chunk in writer.add_file(f"{number}", metadata(content_type), Body(128)):
                sent += len(chunk)
        writer.finish()
        sent += len(writer.take())
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 4 * MIB
    assert sent > (0 if content_type == "text/plain" else 128 * MIB)


async def test_large_files_and_archives_use_zip64(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are lowered, so that a small archive is beyond them."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100_000)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    writer, sent = _ZipWriter(), b""
    for number in range(4):
        async for chunk in writer.add_file(f"{number}", metadata("video/mp4"), Body(2)):
            sent += chunk
        sent += writer.take()
    writer.finish()
    sent += writer.take()
    assert b"PK\x06\x06" in sent  # the end of the directory as ZIP64 has it
    monkeypatch.undo()
    with zipfile.ZipFile(io.BytesIO(sent)) as archive:
        assert archive.testzip() is None
        assert [archive.read(f"{number}") for number in range(4)] == [PIECE * 2] * 4


@pytest.mark.parametrize(
    ("modified_ms", "year"), [(-1, 1980), (0, 1980), (1_790_000_000_000, 2026), (10**13, 2107)]
)
async def test_times_that_zip_cannot_express_are_moved_into_its_range(
    modified_ms: int, year: int
) -> None:
    writer, sent = _ZipWriter(), b""
    async for chunk in writer.add_file("a", metadata("text/plain", modified_ms), Body(1)):
        sent += chunk
    writer.finish()
    sent += writer.take()
    with zipfile.ZipFile(io.BytesIO(sent)) as archive:
        assert archive.getinfo("a").date_time[0] == year


# --- How far reading reaches, and who changed what: told only to those who may know ------------


AUTHENTICATED = "acl:agentClass acl:AuthenticatedAgent"
PUBLIC = "acl:agentClass foaf:Agent"
GROUP = "acl:agentGroup <http://localhost:3000/pod/friends#us>"


async def reaches(world: World, agent: Identity | None, *names: str) -> list[Audience | None]:
    members = [world.resources[path(name)][0] for name in names]
    found = await MemberAudiences(store=world, gate=world.gate).of(agent, members)
    return [found[path(name)] for name in names]


@pytest.mark.parametrize(
    ("who", "reach"),
    [
        (f"acl:agent <{OWNER}>", Audience.OWNER),
        (f"acl:agent <{BOB}>", Audience.PEOPLE),
        (GROUP, Audience.PEOPLE),
        (AUTHENTICATED, Audience.SIGNED_IN),
        (PUBLIC, Audience.EVERYONE),
    ],
)
async def test_the_owner_sees_how_far_reading_reaches(who: str, reach: Audience) -> None:
    world = pod()
    world.acl("/pod/", rule(who, "R", "./", default=True))
    world.store("/pod/doc")
    assert await reaches(world, identity(OWNER), "/pod/doc") == [reach]


async def test_the_right_to_write_alone_shows_nobody_anything() -> None:
    world = pod()
    world.acl("/pod/", rule(f"acl:agent <{BOB}>", "W", "./", default=True))
    world.store("/pod/doc")
    assert await reaches(world, identity(OWNER), "/pod/doc") == [Audience.OWNER]


async def test_members_with_rules_of_their_own_differ_from_the_others() -> None:
    world = pod()
    for name in ("/pod/a", "/pod/b", "/pod/c"):
        world.store(name)
    world.acl("/pod/b", rule(PUBLIC, "R", "b"))
    assert await reaches(world, identity(OWNER), "/pod/a", "/pod/b", "/pod/c") == [
        Audience.OWNER,
        Audience.EVERYONE,
        Audience.OWNER,
    ]


async def test_others_learn_no_more_than_the_server_says_to_them_anyway() -> None:
    world = pod()
    for name in ("/pod/a", "/pod/b", "/pod/c"):
        world.store(name)
    world.acl("/pod/a", rule(f"acl:agent <{BOB}>", "R", "a"))
    world.acl("/pod/b", rule(PUBLIC, "R", "b"))
    names = "/pod/a", "/pod/b", "/pod/c"
    assert await reaches(world, identity(BOB), *names) == [None, Audience.EVERYONE, None]
    assert await reaches(world, None, *names) == [None, Audience.EVERYONE, None]


async def test_a_thousand_members_without_rules_need_one_decision() -> None:
    world = pod()
    names = [f"/pod/{number}" for number in range(1_000)]
    for name in names:
        world.store(name)
    assert await reaches(world, identity(OWNER), *names) == [Audience.OWNER] * 1_000
    assert len(world.bodies_opened) == 1


class Log:
    def __init__(self) -> None:
        self.changes: list[LoggedChange] = []

    def listen(self) -> ChangeSignal:
        raise NotImplementedError

    async def newest_sequence(self) -> int:
        return len(self.changes)

    async def changes_after(self, sequence: int, *, limit: int) -> list[LoggedChange]:
        return self.changes[sequence : sequence + limit]

    def write(self, metadata: Metadata, agent: str | None) -> None:
        change = Change(metadata.path, ChangeType.UPDATE, agent)
        sequence = len(self.changes) + 1
        self.changes.append(LoggedChange(sequence, change, metadata.version, at_ms=0))


async def test_authors_are_those_of_the_version_that_is_shown() -> None:
    world, log = pod(), Log()
    authors = ChangeAuthors(log)
    first = world.store("/pod/doc")
    log.write(first, BOB)
    second = world.store("/pod/doc")
    log.write(second, CAROL)
    assert await authors.of([first]) == {first.path: BOB}
    assert await authors.of([second]) == {second.path: CAROL}
    third = world.store("/pod/doc")
    log.write(third, None)
    assert await authors.of([third]) == {}


async def test_the_memory_of_authors_is_bounded() -> None:
    log = Log()
    authors = ChangeAuthors(log, max_changes=10)
    world = pod()
    written = [world.store(f"/pod/{number}") for number in range(40)]
    for metadata in written:
        log.write(metadata, BOB)
    assert set(await authors.of(written)) == {metadata.path for metadata in written[30:]}
    assert await authors.of([written[-1]]) == {written[-1].path: BOB}


# --- crate reader ------------------------------------------------------------------------------
#
# The manifest of an archive is read entity by entity; the judge is the JSON of the standard
# library.


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


class Slow(io.StringIO):
    """Gives a few characters at a time, wherever that breaks off."""

    def __init__(self, text: str, at_once: int) -> None:
        super().__init__(text)
        self._at_once = at_once

    def read(self, size: int | None = -1, /) -> str:  # noqa: ARG002 - as its base has it
        return super().read(self._at_once)


@given(
    graph=st.lists(JSON, max_size=5),
    before=st.dictionaries(st.text(max_size=3), JSON, max_size=2),
    after=st.dictionaries(st.text(min_size=4, max_size=5), JSON, max_size=2),
    indent=st.sampled_from([None, 0, 2]),
    is_ascii=st.booleans(),
    at_once=st.integers(1, 20),
    cut=st.integers(1, 50),
)
def test_the_elements_are_those_that_any_parser_finds(
    graph: list[Any],
    before: dict[str, Any],
    after: dict[str, Any],
    indent: int | None,
    is_ascii: bool,
    at_once: int,
    cut: int,
) -> None:
    whole = {**before, "@graph": graph, **after}
    text = json.dumps(whole, indent=indent, ensure_ascii=is_ascii)
    assert list(graph_entities(Slow(text, at_once))) == json.loads(text)["@graph"]
    with pytest.raises(Malformed):
        list(graph_entities(Slow(text[:-cut], at_once)))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{}", '{"@graph": {}}', '{"@graph": [1 2]}', '{"@graph": [1],, }',
     '{"@graph": [tru]}', "{@graph: []}", '{"@graph": [' + "[" * 100_000],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        list(graph_entities(io.StringIO(text)))


def test_memory_does_not_grow_with_the_manifest() -> None:
    entity = json.dumps({"@id": "x" * 200, "hasPart": [{"@id": "y"}] * 20})
    peaks = []
    for count in (1000, 20_000):
        stream = io.StringIO('{"@graph": [' + ",\n".join([entity] * count) + "]}")
        tracemalloc.start()
        try:
            assert sum(1 for _ in graph_entities(stream)) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0] + 100_000


def test_one_entity_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_archive, "MAX_ENTITY_CHARACTERS", 100_000)
    with pytest.raises(Malformed, match="too large"):
        list(graph_entities(io.StringIO('{"@graph": ["' + "x" * 10**6 + '"]}')))
