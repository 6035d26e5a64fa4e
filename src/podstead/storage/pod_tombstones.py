"""Whose was this name? A pod that is gone leaves its name behind, which nobody else may have.

A WebID comes from the name of a pod, and access rules name people by their WebIDs, here and on
other servers. Whoever got the name of somebody before would be let in wherever they were.
"""

from __future__ import annotations

from podstead.storage.records import EntryId
from podstead.storage.state import folded


def pod_tombstone(name: str) -> EntryId:
    """The entry that says that a pod had this name, in upper or lower case."""
    return EntryId(f"former-pod/{folded(name)}")
