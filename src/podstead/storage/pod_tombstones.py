"""Tombstones keep the name of a deleted or renamed pod from being used again.

WebIDs are derived from the names of pods, and access rules name people by their WebIDs, here and on
other servers. A new owner of the name would get all the access of the previous one. The tombstone
of a pod that was renamed says which name it has now.
"""

from __future__ import annotations

from podstead.storage.records import Entry, EntryId, PutEntry
from podstead.storage.state import folded


def pod_tombstone(name: str) -> EntryId:
    """The entry for a former pod of this name, which is compared case-insensitively."""
    return EntryId(f"former-pod/{folded(name)}")


def put_tombstone(name: str, *, new_name: str) -> PutEntry:
    """The record that a pod of this name has another name now."""
    return PutEntry(pod_tombstone(name), new_name.encode("ascii"))


def new_name_of(tombstone: Entry) -> str | None:
    """The name that the pod has now; ``None`` if it was deleted."""
    return tombstone.value.decode("ascii") or None
