"""Records are stored as entries; a damaged one is an error, never treated as absent."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from podstead.core.errors import StorageError
from podstead.storage.record_store import RecordKind, secret_key
from podstead.storage.records import Entry, EntryId, Version


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
