"""Tombstones keep the name of a deleted or renamed pod from being used again.

WebIDs are derived from the names of pods, and access rules name people by their WebIDs, here and on
other servers. A new owner of the name would get all the access of the previous one. The tombstone
of a pod that was renamed says which name it has now.
"""

from __future__ import annotations

from typing import Final

from podstead.storage.protocol import EntryRegistry
from podstead.storage.records import Entry, EntryAt, EntryId, Precondition, PutEntry, Record
from podstead.storage.state import folded

_KIND: Final = "former-pod"
_PAGE: Final = 1000


def pod_tombstone(name: str) -> EntryId:
    """The entry for a former pod of this name, which is compared case-insensitively."""
    return EntryId(f"{_KIND}/{folded(name)}")


def put_tombstone(name: str, *, new_name: str) -> PutEntry:
    """The record that a pod of this name has another name now."""
    return PutEntry(pod_tombstone(name), new_name.encode("ascii"))


def new_name_of(tombstone: Entry) -> str | None:
    """The name that the pod has now; ``None`` if it was deleted."""
    return tombstone.value.decode("ascii") or None


async def leading_past(
    store: EntryRegistry, former: Entry, *, now_ms: int
) -> tuple[list[Record], list[Precondition]]:
    """What lets former names that lead to that of ``former`` lead to where it leads itself, before
    somebody else may take it: their requests, and their WebIDs, are not for that person. Raises
    StorageError."""
    records: list[Record] = []
    preconditions: list[Precondition] = []
    after = ""
    while page := await store.list_entries(_KIND, after=after, limit=_PAGE, now_ms=now_ms):
        for each in page:
            new_name = new_name_of(each)
            if new_name is not None and pod_tombstone(new_name) == former.entry:
                records.append(PutEntry(each.entry, former.value))
                preconditions.append(EntryAt(each.entry, each.version))
        after = page[-1].entry
    return records, preconditions
