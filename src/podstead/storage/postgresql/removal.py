"""The statements of the removal of a pod (:mod:`podstead.storage.removal`): what is in the pod has
its root in its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.storage.postgresql.apply import CHANNEL, lock_key
from podstead.storage.records import ChangeType, ResourceKind
from podstead.storage.removal import PendingRemoval, PodRemovals
from podstead.storage.steps import Statement, Steps, ask, do
from podstead.storage.tables import CHANGES, end_of

_FIND: Final = "SELECT root FROM pods WHERE folded_name = %s"
_LOCK: Final = "SELECT pg_advisory_xact_lock(%s)"
_KEEP_ACLS: Final = (
    "INSERT INTO deleted_acls (root, write_version, path, version, content_type, content, at_ms)"
    " SELECT r.root, %s, r.path, r.version, r.content_type, b.content, %s"
    " FROM resources r LEFT JOIN bodies b ON b.root = r.root AND b.path = r.path"
    " WHERE r.root = %s AND r.kind = %s"
)
_ACLS: Final = "SELECT path FROM resources WHERE root = %s AND kind = %s"
_LAST: Final = (
    "SELECT path FROM resources WHERE root = %s AND path >= %s AND path < %s"
    " ORDER BY path DESC LIMIT %s"
)
_DROP_BLOBS: Final = (
    "INSERT INTO garbage (blob, dropped_ms) SELECT blob, %s FROM resources"
    " WHERE root = %s AND path = ANY(%s) AND blob IS NOT NULL"
)
_DELETE_BODIES: Final = "DELETE FROM bodies WHERE root = %s AND path = ANY(%s)"
_DELETE_RESOURCES: Final = "DELETE FROM resources WHERE root = %s AND path = ANY(%s)"
_DELETED_ACLS: Final = (
    "SELECT path FROM deleted_acls WHERE root = %s AND write_version = %s ORDER BY path DESC"
)
_LOG: Final = (
    "WITH numbers AS (UPDATE counters SET value = value + %s WHERE name = 'changes'"  # noqa: S608
    " RETURNING value - %s AS base)"
    f" {CHANGES.insert}"
    " SELECT numbers.base + gone.number, gone.path, %s, %s, %s, %s"
    " FROM numbers, unnest(%s::text[]) WITH ORDINALITY AS gone (path, number)"
)


class PostgresRemovals(PodRemovals):
    """Removals by one of several nodes."""

    def _lock_pod(self, name: str) -> Steps[bool]:
        found = yield ask(_FIND, name)
        if not found:
            return False
        # The locks of a batch of writes, in the same order.
        for key in sorted({lock_key(found[0][0]), lock_key(f"pod {name}")}):
            yield do(_LOCK, key)
        return True

    def _lock(self, root: str) -> Steps[None]:
        yield do(_LOCK, lock_key(root))

    def _drop_acls(self, pending: PendingRemoval) -> Steps[None]:
        acl = ResourceKind.ACL.value
        yield do(_KEEP_ACLS, pending.version, pending.at_ms, pending.root, acl)
        acls = yield ask(_ACLS, pending.root, acl)
        if acls:
            yield from self._drop(pending, [path for (path,) in acls])

    def _last_resources(self, pending: PendingRemoval, limit: int) -> Statement:
        return ask(_LAST, pending.root, pending.root, end_of(pending.root), limit)

    def _drop(self, pending: PendingRemoval, paths: Sequence[ResourcePath]) -> Steps[None]:
        key = (pending.root, list(paths))
        yield do(_DROP_BLOBS, pending.at_ms, *key)
        yield do(_DELETE_BODIES, *key)
        yield do(_DELETE_RESOURCES, *key)

    def _deleted_acls(self, pending: PendingRemoval) -> Statement:
        return ask(_DELETED_ACLS, pending.root, pending.version)

    def _log(self, pending: PendingRemoval, paths: Sequence[ResourcePath]) -> Steps[None]:
        change = (ChangeType.DELETE.value, pending.agent, pending.version, pending.at_ms)
        yield do(_LOG, len(paths), len(paths), *change, list(paths))
        yield do(f"NOTIFY {CHANNEL}")
