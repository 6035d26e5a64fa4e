"""The statements of this engine for maintenance and removals (:mod:`podstead.storage.maintenance`,
:mod:`podstead.storage.removal`), and the records of blobs. What is in a pod is a range of paths.
"""

import json
from collections.abc import Sequence
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.storage.maintenance import Maintenance
from podstead.storage.records import BlobId, ChangeType, ResourceKind
from podstead.storage.removal import PendingRemoval, PodRemovals
from podstead.storage.steps import SqlStatement, Steps, query, run_sql
from podstead.storage.tables import CHANGES, DELETED_ACLS, end_of


class SqliteMaintenance(Maintenance):
    """Runs in this process, which holds the lock of the database."""

    clear_acls = (
        "UPDATE deleted_acls SET content = NULL WHERE rowid IN (SELECT rowid FROM deleted_acls"
        " WHERE content IS NOT NULL AND at_ms < %s ORDER BY at_ms LIMIT %s) RETURNING 1"
    )
    delete_acls = (
        "DELETE FROM deleted_acls WHERE rowid IN (SELECT rowid FROM deleted_acls"
        " WHERE at_ms < %s ORDER BY at_ms LIMIT %s) RETURNING 1"
    )

    blobs = "SELECT value AS blob FROM json_each(%s)"

    def list_of(self, blobs: Sequence[BlobId]) -> str:
        return json.dumps(blobs)

    def take_orphan_body(self, path: ResourcePath) -> Steps[bytes | None]:
        content = yield query(
            "DELETE FROM bodies WHERE path = %s AND NOT EXISTS"
            " (SELECT 1 FROM resources WHERE path = %s AND blob IS NULL) RETURNING content",
            path,
            path,
        )
        return content[0][0] if content else None


_KEEP_ACLS: Final = (
    f"{DELETED_ACLS.insert}"  # noqa: S608 - our columns
    " SELECT %s, r.path, r.version, r.content_type, b.content, %s"
    " FROM resources r LEFT JOIN bodies b ON b.path = r.path"
    " WHERE r.path >= %s AND r.path < %s AND r.kind = %s"
)
_IN_RANGE: Final = "path >= %s AND path < %s"
_ACLS_IN_RANGE: Final = f"{_IN_RANGE} AND kind = {ResourceKind.ACL.value}"
_LAST: Final = f"SELECT path FROM resources WHERE {_IN_RANGE} ORDER BY path DESC LIMIT %s"  # noqa: S608
_DELETED_ACLS: Final = "SELECT path FROM deleted_acls WHERE write_version = %s ORDER BY path DESC"
_LOG: Final = (
    f"{CHANGES.insert} SELECT c.value + gone.key + 1, gone.value, %s, %s, %s, %s"  # noqa: S608
    " FROM counters c, json_each(%s) gone WHERE c.name = 'changes'"
)
_COUNT: Final = "UPDATE counters SET value = value + %s WHERE name = 'changes'"


class SqliteRemovals(PodRemovals):
    """Removals by this process, which holds the lock of the database."""

    def _drop_acls(self, pending: PendingRemoval) -> Steps[None]:
        below = _below(pending)
        acl = ResourceKind.ACL.value
        yield run_sql(_KEEP_ACLS, pending.version, pending.at_ms, *below, acl)
        yield from _drop_resources(pending, _ACLS_IN_RANGE, below)

    def _last_resources(self, pending: PendingRemoval, limit: int) -> SqlStatement:
        return query(_LAST, *_below(pending), limit)

    def _drop(self, pending: PendingRemoval, paths: Sequence[ResourcePath]) -> Steps[None]:
        yield from _drop_resources(pending, _IN_RANGE, (paths[-1], end_of(pending.root)))

    def _deleted_acls(self, pending: PendingRemoval) -> SqlStatement:
        return query(_DELETED_ACLS, pending.version)

    def _log(self, pending: PendingRemoval, paths: Sequence[ResourcePath]) -> Steps[None]:
        change = (ChangeType.DELETE.value, pending.agent, pending.version, pending.at_ms)
        yield run_sql(_LOG, *change, json.dumps(paths))
        yield run_sql(_COUNT, len(paths))


def _below(pending: PendingRemoval) -> tuple[str, str]:
    return pending.root, end_of(pending.root)


def _drop_resources(pending: PendingRemoval, which: str, values: tuple[str, str]) -> Steps[None]:
    yield run_sql(
        "INSERT INTO garbage (blob, dropped_ms)"  # noqa: S608 - words of ours
        f" SELECT blob, %s FROM resources WHERE {which} AND blob IS NOT NULL",
        pending.at_ms,
        *values,
    )
    bodies = f"DELETE FROM bodies WHERE path IN (SELECT path FROM resources WHERE {which})"  # noqa: S608
    yield run_sql(bodies, *values)
    yield run_sql(f"DELETE FROM resources WHERE {which}", *values)  # noqa: S608 - words of ours
