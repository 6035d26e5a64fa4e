"""Entries are counted up to a bound, by kind."""

from __future__ import annotations

from pathlib import Path

from podstead.storage.records import EntryId, PutEntry, Version, Write
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore


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
