"""Tombstones keep the name of a deleted pod from being used again.

WebIDs are derived from the names of pods, and access rules name people by their WebIDs, here and on
other servers. A new owner of the name would get all the access of the previous one.
"""

from __future__ import annotations

from podstead.storage.records import EntryId
from podstead.storage.state import folded


def pod_tombstone(name: str) -> EntryId:
    """The entry for a deleted pod of this name, which is compared case-insensitively."""
    return EntryId(f"former-pod/{folded(name)}")
