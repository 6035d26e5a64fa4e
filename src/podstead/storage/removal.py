"""Removing a pod: access ends in one transaction, and the resources are deleted in batches, so that
other writes can run in between and neither the database nor its log grows.

The first transaction removes the pod, its tokens, its entries and all ACLs below its root: from
then on nobody has access, and the name remains taken. An entry records that the rest must be
removed; if the process ends, the next sweep continues, on any node. The root container is deleted
last, so that no pod of that name can be created before the removal is complete.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

import msgspec

from podstead.core.identifiers import ResourcePath
from podstead.storage import former_states, pods, records, schema, state
from podstead.storage.steps import SqlStatement, Steps, query, run_sql

BATCH_ROWS: Final = 500
"""The maximum number of resources that one transaction removes."""

_KIND: Final = "removal"
_PUT_ENTRY: Final = (
    "INSERT INTO entries (entry, version, value) VALUES (%s, %s, %s) ON CONFLICT (entry)"
    " DO UPDATE SET version = excluded.version, value = excluded.value, owner = NULL,"
    " expires_ms = NULL"
)
_DELETE_POD: Final = "DELETE FROM pods WHERE folded_name = %s RETURNING name, root"
_DELETE_STORAGE: Final = "DELETE FROM storages WHERE root = %s"
_DELETE_CHARGES: Final = "DELETE FROM charges WHERE root = %s"
_DELETE_TOKENS: Final = "DELETE FROM tokens WHERE pod = %s"
_DELETE_ENTRIES_OF: Final = "DELETE FROM entries WHERE owner = %s"
_DELETE_ENTRY: Final = "DELETE FROM entries WHERE entry = %s"
_PENDING: Final = (
    "SELECT value FROM entries WHERE entry >= %s AND entry < %s"
    " ORDER BY entry LIMIT 1 FOR UPDATE SKIP LOCKED"
)


class PendingRemoval(msgspec.Struct, frozen=True):
    """A removal in progress: everything below ``root`` must be deleted."""

    root: str
    version: str
    at_ms: int
    agent: str | None

    @property
    def entry(self) -> str:
        return f"{_KIND}/{self.root}"


class PodRemovals(ABC):
    """The steps of a removal, with the statements of an engine for what is in a pod."""

    def begin(self, removal: records.PodRemoval) -> Steps[bool]:
        """End all access to the pod and start its removal; False if there is none of that name."""
        name = state.folded(removal.name)
        if not (yield from self._lock_pod(name)):
            return False
        deleted = yield query(_DELETE_POD, name)
        if not deleted:
            return False
        ((pod, root),) = deleted
        yield run_sql(_DELETE_STORAGE, root)
        yield run_sql(_DELETE_CHARGES, root)
        yield run_sql(_DELETE_TOKENS, pod)
        for table in schema.feature_tables():
            if table.storage is not None:
                yield run_sql(table.delete_rows, root)
        for owner in (root, removal.entry_owner):
            if owner is not None:
                yield run_sql(_DELETE_ENTRIES_OF, owner)
        pending = PendingRemoval(root, removal.version, removal.at_ms, removal.agent)
        yield from self._drop_acls(pending)
        yield run_sql(_PUT_ENTRY, pods.pod_tombstone(removal.name), removal.version, b"")
        yield run_sql(_PUT_ENTRY, pending.entry, removal.version, msgspec.msgpack.encode(pending))
        yield from self._remove_batch(pending)  # for a small pod, this is everything
        return True

    def resume(self) -> Steps[bool]:
        """Remove a batch of resources of deleted pods; whether there may be more."""
        noted = yield query(_PENDING, f"{_KIND}/", f"{_KIND}0")
        if not noted:
            return False
        pending = msgspec.msgpack.decode(noted[0][0], type=PendingRemoval)
        yield from self._lock(pending.root)
        yield from self._remove_batch(pending)
        return True

    def _remove_batch(self, pending: PendingRemoval) -> Steps[None]:
        former = yield query(former_states.BATCH_OF_ROOT, pending.root, BATCH_ROWS)
        for row in former:
            for text, values in former_states.drop_statements(
                former_states.former_state_of(row).drop.key, pending.at_ms
            ):
                yield run_sql(text, *values)
        if len(former) == BATCH_ROWS:
            return
        # In descending order, so that members are deleted before their containers.
        paths = _paths((yield self._last_resources(pending, BATCH_ROWS)))
        if paths:
            # Before the rows of the change log, which then fit into the freed pages.
            yield from self._drop(pending, paths)
            yield from self._log(pending, paths)
        if len(paths) < BATCH_ROWS:
            # ACLs are logged last, so that subscribers are still notified that a resource was
            # deleted.
            gone = _paths((yield self._deleted_acls(pending)))
            if gone:
                yield from self._log(pending, gone)
            yield run_sql(_DELETE_ENTRY, pending.entry)

    def _lock_pod(self, name: str) -> Steps[bool]:
        """Keep others from writing to the pod with that folded name; False if there is none."""
        del name
        yield from ()
        return True

    def _lock(self, root: str) -> Steps[None]:
        """Keep others from writing to the storage."""
        del root
        yield from ()

    @abstractmethod
    def _drop_acls(self, pending: PendingRemoval) -> Steps[None]:
        """Delete all ACLs of the pod, and keep them for those who hear of the removal."""

    @abstractmethod
    def _last_resources(self, pending: PendingRemoval, limit: int) -> SqlStatement:
        """Asks for the last paths of the pod, the last one first."""

    @abstractmethod
    def _drop(self, pending: PendingRemoval, paths: Sequence[ResourcePath]) -> Steps[None]:
        """Delete those last resources of the pod with their bodies."""

    @abstractmethod
    def _deleted_acls(self, pending: PendingRemoval) -> SqlStatement:
        """Asks for the paths of the ACLs that the removal deleted, the last one first."""

    @abstractmethod
    def _log(self, pending: PendingRemoval, paths: Sequence[ResourcePath]) -> Steps[None]:
        """Add the deletions to the change log."""


def _paths(rows: Sequence[schema.Row]) -> list[ResourcePath]:
    return [path for (path,) in rows]
