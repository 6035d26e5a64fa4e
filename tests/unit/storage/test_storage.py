"""Records are stored as entries; a damaged one is an error, never treated as absent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import BodyTooLarge, Overloaded, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.backup.retention import KeepRule, kept, parse_interval_s, parse_keep_rules
from podstead.storage.blobs.body_store import ContentBody
from podstead.storage.document_reader import (
    MAX_ATTEMPTS,
    ChangingTooFast,
    DocumentReader,
    Superseded,
)
from podstead.storage.record_store import RecordKind, secret_key
from podstead.storage.records import Entry, EntryId, Metadata, ResourceKind, Version
from podstead.storage.waiting_jobs import WaitingJobs


class Note(msgspec.Struct, frozen=True):
    """A record."""

    text: str
    number: int = 0


NOTES = RecordKind("note", Note)


@dataclasses.dataclass
class OneEntry:
    """A registry with one entry."""

    entry: Entry | None

    async def read_entry(self, entry: EntryId, *, now_ms: int) -> Entry | None:  # noqa: ARG002
        return self.entry if self.entry is not None and self.entry.entry == entry else None

    async def list_entries(
        self,
        kind: str,  # noqa: ARG002
        *,
        owner: str | None = None,  # noqa: ARG002
        after: str = "",  # noqa: ARG002
        limit: int,  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
    ) -> list[Entry]:
        return [self.entry] if self.entry is not None else []


def stored(value: bytes) -> OneEntry:
    return OneEntry(Entry(EntryId("note/a/b"), Version("v"), value, "alice", 5))


async def test_a_record_is_read_as_it_was_put() -> None:
    put = NOTES.put("a/b", Note("é", 1), owner="alice", expires_ms=5)
    kept = await NOTES.read(stored(put.value), "a/b", now_ms=0)
    assert kept is not None
    assert (kept.key, kept.value, kept.owner, kept.expires_ms) == ("a/b", Note("é", 1), "alice", 5)
    assert kept.entry == put.entry == "note/a/b"
    changed = NOTES.replace(kept, Note("x"))
    assert (changed.entry, changed.owner, changed.expires_ms) == ("note/a/b", "alice", 5)
    assert [each.key for each in await NOTES.page(stored(put.value), now_ms=0)] == ["a/b"]


async def test_absence_is_none() -> None:
    assert await NOTES.read(OneEntry(None), "a", now_ms=0) is None


async def test_a_record_of_an_earlier_version_has_its_defaults() -> None:
    kept = await NOTES.read(stored(b'{"text": "x", "gone": []}'), "a/b", now_ms=0)
    assert kept is not None
    assert kept.value == Note("x", 0)


@pytest.mark.parametrize(
    "value", [b"", b"null", b"[]", b"{}", b'{"text": 1}', b'{"text": "x"', b"\xff"]
)
async def test_a_damaged_record_is_trouble(value: bytes) -> None:
    with pytest.raises(StorageError):
        await NOTES.read(stored(value), "a/b", now_ms=0)
    with pytest.raises(StorageError):
        await NOTES.page(stored(value), now_ms=0)
    with pytest.raises(StorageError):
        await NOTES.of_owner(stored(value), "alice", now_ms=0)


def test_a_secret_is_known_by_its_sha_256() -> None:
    """A-185; FIPS 180-4: the digest of ``abc``"""
    assert secret_key("abc").startswith("ba7816bf8f01cfea414140de5dae2223")


# --- Which backups a series keeps: the rules against a plain model -----------------------------


_FORMATS = {"h": "%Y-%m-%d %H", "d": "%Y-%m-%d", "w": "%G week %V", "m": "%Y-%m", "y": "%Y"}
_rules = st.lists(st.builds(KeepRule, st.integers(1, 9), st.sampled_from("hdwmy")), max_size=4)
_moments = st.lists(
    st.integers(0, 386 * 24 * 60).map(
        lambda minutes: datetime(2024, 12, 20, tzinfo=UTC) + timedelta(minutes=minutes)
    ),
    unique=True,
    max_size=40,
)


def model(moments: Sequence[datetime], rules: Sequence[KeepRule]) -> set[datetime]:
    """For each rule, go back in time and count the periods that were seen."""
    keep = {max(moments)} if moments else set()
    for rule in rules:
        seen: list[str] = []
        for moment in sorted(moments, reverse=True):
            period = moment.strftime(_FORMATS[rule.unit])
            if period in seen:
                continue
            seen.append(period)
            if len(seen) <= rule.count:
                keep.add(moment)
    return keep


@given(_moments, _rules)
def test_the_rules_keep_what_the_model_keeps(
    moments: list[datetime], rules: list[KeepRule]
) -> None:
    assert kept(moments, rules) == model(moments, rules)


@given(_moments, _rules)
def test_what_is_kept_is_kept_again(moments: list[datetime], rules: list[KeepRule]) -> None:
    """Pruning twice removes nothing more."""
    once = kept(moments, rules)
    assert kept(once, rules) == once


def test_an_hourly_series_of_a_year_shrinks_to_the_numbers_of_the_rules() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    series: set[datetime] = set()
    for hour in range(0, 365 * 24, 6):
        series = set(kept({*series, start + timedelta(hours=hour)}, parse_keep_rules("7d,4w,6m")))
        assert len(series) <= 7 + 4 + 6
    assert min(series) == datetime(2026, 7, 31, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0d", "7d,", "7x", "-1d", "7d 4w", "1.5d", "99999d"]
)
def test_other_rules_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="7d,4w,6m"):
        parse_keep_rules(text)


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("6h", 21_600), ("1d", 86_400)])
def test_an_interval_has_a_unit(text: str, seconds: int) -> None:
    assert parse_interval_s(text) == seconds


@pytest.mark.parametrize("text", ["", "6", "h", "0h", "6 hours", "-1h"])
def test_other_intervals_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="6h"):
        parse_interval_s(text)


# --- Who floods one storage with writes delays the others by a fair share ----------------------


_storages = st.lists(st.sampled_from(["", "/a/", "/b/", "/c/"]), max_size=60)


def test_half_of_the_room_is_left_to_other_storages() -> None:
    waiting: WaitingJobs[int] = WaitingJobs(6)
    for number in range(3):
        waiting.add(number, "/busy/")
    with pytest.raises(Overloaded, match="of this storage"):
        waiting.add(3, "/busy/")
    for number in range(3):
        waiting.add(number, "")
    with pytest.raises(Overloaded, match="Too many changes are"):
        waiting.add(3, "/other/")
    waiting.take(6)
    waiting.add(3, "/busy/")


def test_one_write_of_another_storage_is_in_the_next_batch() -> None:
    waiting: WaitingJobs[str] = WaitingJobs(100)
    for number in range(50):
        waiting.add(f"busy {number}", "/busy/")
    waiting.add("other", "/other/")
    assert waiting.take(4) == ["busy 0", "busy 1", "busy 2", "other"]
    assert waiting.take(2) == ["busy 3", "busy 4"]
    assert len(waiting) == 45


@given(_storages, st.integers(1, 20))
def test_each_storage_keeps_its_order_and_nothing_is_lost(storages: list[str], limit: int) -> None:
    waiting: WaitingJobs[tuple[str, int]] = WaitingJobs(200)
    jobs = [(storage, number) for number, storage in enumerate(storages)]
    for job in jobs:
        waiting.add(job, job[0])
    taken: list[tuple[str, int]] = []
    while len(waiting):
        batch = waiting.take(limit)
        assert len(batch) == min(limit, len(jobs) - len(taken))
        taken += batch
    for storage in storages:
        assert [job for job in taken if job[0] == storage] == [
            job for job in jobs if job[0] == storage
        ]


def test_the_room_of_a_storage_is_that_of_what_still_waits() -> None:
    waiting: WaitingJobs[int] = WaitingJobs(8)
    for number in range(4):
        waiting.add(number, "/busy/")
    waiting.add(4, "/other/")
    waiting.take(2)
    waiting.add(5, "/busy/")
    with pytest.raises(Overloaded):
        waiting.add(6, "/busy/")


# --- document reader ---------------------------------------------------------------------------
#
# What stored documents say, read once for each version, against a dict of their contents.


CARD, OTHER = ResourcePath("/card"), ResourcePath("/other")
MAX_BYTES = 100


class Documents:
    """Documents in memory, each of which may be replaced just before it is opened."""

    def __init__(self) -> None:
        self.contents: dict[ResourcePath, str] = {}
        self.versions: dict[ResourcePath, int] = {}
        self.replacements: list[str] = []
        self.interpreted: list[tuple[str, str]] = []
        self.opened = 0
        self.trouble: Exception | None = None

    def put(self, path: ResourcePath, content: str) -> None:
        self.contents[path] = content
        self.versions[path] = self.versions.get(path, 0) + 1

    def metadata(self, path: ResourcePath) -> Metadata | None:
        if path not in self.contents:
            return None
        return Metadata(
            path=path,
            kind=ResourceKind.DOCUMENT,
            version=Version(f"{self.versions[path]:016x}"),
            content_type="text/plain",
            size_bytes=len(self.contents[path]),
            modified_ms=0,
            created_ms=0,
        )

    async def read_metadata(
        self, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, Metadata | None]:
        return {path: self.metadata(path) for path in paths}

    async def open_body(self, metadata: Metadata) -> ContentBody | None:
        self.opened += 1
        if self.replacements:
            self.put(metadata.path, self.replacements.pop(0))
        current = self.metadata(metadata.path)
        if current is None or current.version != metadata.version:
            return None
        return ContentBody(self.contents[metadata.path].encode())

    async def interpret(self, name: str, metadata: Metadata, content: bytes) -> str:
        self.interpreted.append((name, metadata.version))
        if self.trouble is not None:
            raise self.trouble
        return f"{name} says {content.decode()}"


@pytest.fixture
def documents() -> Documents:
    documents = Documents()
    documents.put(CARD, "one")
    return documents


def reader_of(documents: Documents, *, max_weight: int = 1000) -> DocumentReader[str]:
    return DocumentReader(
        documents,
        documents.interpret,
        kind="cards",
        weigh=lambda _, result: len(result),
        max_weight=max_weight,
        max_bytes=MAX_BYTES,
    )


async def test_a_version_is_read_once(documents: Documents) -> None:
    reader = reader_of(documents)
    assert [await reader.current(CARD, CARD) for _ in range(3)] == ["/card says one"] * 3
    assert (documents.opened, len(documents.interpreted)) == (1, 1)


@given(
    st.lists(
        st.tuples(st.sampled_from([CARD, OTHER]), st.one_of(st.none(), st.sampled_from("abc"))),
        max_size=20,
    )
)
async def test_a_document_says_what_was_written_last(
    steps: list[tuple[ResourcePath, str | None]],
) -> None:
    """Writes, deletions and reads in any order; the cache is too small for all of them."""
    documents = Documents()
    reader = reader_of(documents, max_weight=25)
    for path, content in steps:
        if content is None:
            documents.contents.pop(path, None)
        else:
            documents.put(path, content)
        for each in (CARD, OTHER):
            stored = documents.contents.get(each)
            expected = None if stored is None else f"{each} says {stored}"
            assert await reader.current(each, each) == expected


async def test_what_depends_on_the_name_is_not_mixed_up(documents: Documents) -> None:
    """Two WebIDs may be described in one document."""
    reader = reader_of(documents)
    names = ["/card#me", "/card#you"]
    assert [await reader.current(name, CARD) for name in names * 2] == [
        "/card#me says one",
        "/card#you says one",
    ] * 2


async def test_trouble_is_not_remembered(documents: Documents) -> None:
    """Trouble may pass, while the version stays the same."""
    reader = reader_of(documents)
    documents.trouble = StorageError("The disk cannot be read")
    with pytest.raises(StorageError):
        await reader.current(CARD, CARD)
    documents.trouble = None
    assert await reader.current(CARD, CARD) == "/card says one"


async def test_a_replaced_document_is_read_at_its_new_version(documents: Documents) -> None:
    documents.replacements = ["two", "three"]
    assert await reader_of(documents).current(CARD, CARD) == "/card says three"
    assert len(documents.interpreted) == 1


async def test_a_document_that_is_replaced_every_time_is_not_read_for_ever(
    documents: Documents,
) -> None:
    documents.replacements = ["again"] * (MAX_ATTEMPTS + 1)
    with pytest.raises(ChangingTooFast, match="The cards are changing too fast to be read"):
        await reader_of(documents).current(CARD, CARD)
    assert (documents.opened, documents.interpreted) == (MAX_ATTEMPTS, [])


async def test_a_large_document_is_not_opened(documents: Documents) -> None:
    reader = reader_of(documents)
    documents.put(CARD, "x" * MAX_BYTES)
    assert await reader.current(CARD, CARD) is not None
    documents.put(CARD, "x" * (MAX_BYTES + 1))
    with pytest.raises(BodyTooLarge):
        await reader.current(CARD, CARD)
    assert documents.opened == 1


async def test_several_documents_are_read_at_one_moment(documents: Documents) -> None:
    """All of them again, if one was replaced: together they must never say what neither moment
    said."""
    documents.put(OTHER, "one")
    reader = reader_of(documents)
    seen: list[tuple[str, ...]] = []

    async def read(snapshot: Mapping[ResourcePath, Metadata | None]) -> list[str]:
        found = [metadata for metadata in snapshot.values() if metadata is not None]
        seen.append(tuple(each.version for each in found))
        if len(seen) == 1:
            documents.put(CARD, "two")
            documents.put(OTHER, "two")
        return [await reader.read(each.path, each) for each in found]

    assert await reader.retry([CARD, OTHER], read) == ["/card says two", "/other says two"]
    assert len(seen) == 2


async def test_another_source_shares_the_cache_and_nothing_else(documents: Documents) -> None:
    """Such as one of an earlier moment, in which a deleted document is back."""
    earlier = Documents()
    earlier.put(CARD, "one")
    earlier.put(OTHER, "gone by now")
    reader = reader_of(documents)
    assert await reader.current(CARD, CARD) == "/card says one"
    over = reader.over(earlier)
    assert await over.current(CARD, CARD) == "/card says one"
    assert await over.current(OTHER, OTHER) == "/other says gone by now"
    assert (documents.opened, earlier.opened) == (1, 1)
    assert await reader.current(OTHER, OTHER) is None


async def test_a_superseded_version_is_not_taken_for_an_absent_document(
    documents: Documents,
) -> None:
    metadata = documents.metadata(CARD)
    assert metadata is not None
    documents.put(CARD, "two")
    with pytest.raises(Superseded):
        await reader_of(documents).read(CARD, metadata)
