"""Restores the access rules that applied to a resource when both were deleted (N-18).

When a resource is deleted, its own rules are deleted with it, and those of its container do not say
who could read it before. The engine keeps deleted rules for a day, with the write that deleted
them, so that they can be applied again: those deleted by the change that a notification is about,
and those deleted later together with their resource, as when a container is deleted right after its
members. Deleting rules alone revokes a right, so those stay deleted (N-30).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from podstead.core.identifiers import ROOT, ResourcePath, acl_of, ancestors, description_of
from podstead.notifications.notification import Activity, Notification
from podstead.storage import records
from podstead.storage.blobs.body_store import ContentBody
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import ResourceStore, Snapshot
from podstead.storage.records import DeletedAcl, Metadata
from podstead.wac.effective import acl_paths
from podstead.wac.modes import governed

LOOKED_THROUGH: Final = 256
"""How many rows of the change log after a notification are searched for deletions."""

_DELETIONS: Final = frozenset({Activity.DELETE, Activity.REMOVE})


@dataclass(frozen=True, slots=True)
class DeletedRules:
    """The deleted rules that applied to a notification.

    ``something_went`` is true if a resource was deleted with the change or after it, with or
    without rules. ``is_certain`` is false if the time is unknown: then a right that no rule grants
    may still have existed.
    """

    rules: Mapping[ResourcePath, DeletedAcl]
    something_went: bool
    is_certain: bool


async def rules_deleted_since(
    store: ResourceStore, notification: Notification, snapshot: Snapshot
) -> DeletedRules:
    """The rules deleted, as of ``snapshot``, which contains the topic and all containers above
    it."""
    subject = governed(notification.topic).subject
    rules: dict[ResourcePath, DeletedAcl] = {}
    gone = {place for place in (subject, *ancestors(subject)) if snapshot[place] is None} - {ROOT}
    if notification.activity is Activity.DELETE and notification.object in (
        subject,
        description_of(subject),
    ):
        gone.discard(subject)
    something_went = bool(gone) or notification.activity in _DELETIONS
    if gone:
        for row in await store.changes_after(notification.sequence, limit=LOOKED_THROUGH):
            place = row.change.path
            if place in gone and row.change.activity is records.ChangeType.DELETE:
                gone.discard(place)
                rules |= await store.deleted_acls(row.version, [acl_of(place)])
    if notification.activity in _DELETIONS:
        rules |= await store.deleted_acls(notification.write, acl_paths(subject))
    return DeletedRules(rules, something_went=something_went, is_certain=not gone)


class RestoredRules:
    """The store with deleted rules put back in their places."""

    def __init__(self, store: ResourceStore, deleted: Mapping[ResourcePath, DeletedAcl]) -> None:
        self._store = store
        self._deleted = deleted

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        wanted = tuple(paths)
        return self.restored(await self._store.read_metadata(wanted), wanted)

    def restored(self, snapshot: Snapshot, paths: Iterable[ResourcePath]) -> Snapshot:
        """A snapshot of these paths with the rules put back."""
        back = {path: self._deleted[path].metadata for path in paths if path in self._deleted}
        return {**snapshot, **back}

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        deleted = self._deleted.get(metadata.path)
        if deleted is None:
            return await self._store.open_body(metadata)
        return ContentBody(deleted.content)
