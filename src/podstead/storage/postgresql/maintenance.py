"""The statements of this engine for maintenance and removals (:mod:`podstead.storage.maintenance`,
:mod:`podstead.storage.removal`), and the records of blobs. What is in a pod has its root in its
key.
"""

from collections.abc import Sequence
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.storage.maintenance import BATCH_ROWS, Maintenance
from podstead.storage.postgresql.apply import CHANNEL, Connection, lock_key
from podstead.storage.records import BlobId, ChangeType, ResourceKind
from podstead.storage.removal import PendingRemoval, PodRemovals
from podstead.storage.steps import SqlStatement, Steps, query, run_sql
from podstead.storage.tables import CHANGES, end_of, root_of

REMOVAL_LOCK: Final = 0x706F_6473_686F_6C64
"""The advisory lock that a backup shares while bodies must not be removed: "podshold" in ASCII."""

HOLD_REMOVALS: Final = "SELECT pg_advisory_xact_lock_shared(%s)"


async def allows_removals(connection: Connection) -> bool:
    """Whether no backup is being made on any node, so that what is garbage by now may be removed.

    Raises psycopg.Error.
    """
    cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (REMOVAL_LOCK,))
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


class PostgresMaintenance(Maintenance):
    """Skips rows that another node's transaction holds, so that nobody waits for them long."""

    clear_acls = (
        "UPDATE deleted_acls SET content = NULL WHERE (root, write_version, path) IN"
        " (SELECT root, write_version, path FROM deleted_acls"
        " WHERE content IS NOT NULL AND at_ms < %s"
        " ORDER BY at_ms LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1"
    )
    delete_acls = (
        "DELETE FROM deleted_acls WHERE (root, write_version, path) IN"
        " (SELECT root, write_version, path FROM deleted_acls WHERE at_ms < %s"
        " ORDER BY at_ms LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1"
    )

    blobs = "SELECT unnest(%s::text[]) AS blob"

    def list_of(self, blobs: Sequence[BlobId]) -> list[str]:
        return list(blobs)

    def take_orphan_body(self, path: ResourcePath) -> Steps[bytes | None]:
        key = (root_of(path), path)
        # A write that stores a resource there may be about to commit.
        yield run_sql("SELECT pg_advisory_xact_lock(%s)", lock_key(key[0]))
        content = yield query(
            "DELETE FROM bodies WHERE root = %s AND path = %s AND NOT EXISTS"
            " (SELECT 1 FROM resources WHERE root = %s AND path = %s AND blob IS NULL)"
            " RETURNING content",
            *key,
            *key,
        )
        return bytes(content[0][0]) if content else None


async def delete_expired_uses(connection: Connection, *, now_ms: int) -> bool:
    """Delete a batch of keys that may be used again, and of full rate buckets; whether there may be
    more. Raises psycopg.Error."""
    used = await connection.execute(
        "DELETE FROM used_once WHERE key IN (SELECT key FROM used_once"
        " WHERE until_ms <= %s ORDER BY until_ms LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1",
        (now_ms, BATCH_ROWS),
    )
    buckets = await connection.execute(
        "DELETE FROM rate_buckets WHERE bucket IN (SELECT bucket FROM rate_buckets"
        " WHERE full_at_us <= %s LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1",
        (now_ms * 1000, BATCH_ROWS),
    )
    return BATCH_ROWS in (len(await used.fetchall()), len(await buckets.fetchall()))


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
        found = yield query(_FIND, name)
        if not found:
            return False
        # The locks of a batch of writes, in the same order.
        for key in sorted({lock_key(found[0][0]), lock_key(f"pod {name}")}):
            yield run_sql(_LOCK, key)
        return True

    def _lock(self, root: str) -> Steps[None]:
        yield run_sql(_LOCK, lock_key(root))

    def _drop_acls(self, pending: PendingRemoval) -> Steps[None]:
        acl = ResourceKind.ACL.value
        yield run_sql(_KEEP_ACLS, pending.version, pending.at_ms, pending.root, acl)
        acls = yield query(_ACLS, pending.root, acl)
        if acls:
            yield from self._drop(pending, [path for (path,) in acls])

    def _last_resources(self, pending: PendingRemoval, limit: int) -> SqlStatement:
        return query(_LAST, pending.root, pending.root, end_of(pending.root), limit)

    def _drop(self, pending: PendingRemoval, paths: Sequence[ResourcePath]) -> Steps[None]:
        key = (pending.root, list(paths))
        yield run_sql(_DROP_BLOBS, pending.at_ms, *key)
        yield run_sql(_DELETE_BODIES, *key)
        yield run_sql(_DELETE_RESOURCES, *key)

    def _deleted_acls(self, pending: PendingRemoval) -> SqlStatement:
        return query(_DELETED_ACLS, pending.root, pending.version)

    def _log(self, pending: PendingRemoval, paths: Sequence[ResourcePath]) -> Steps[None]:
        change = (ChangeType.DELETE.value, pending.agent, pending.version, pending.at_ms)
        yield run_sql(_LOG, len(paths), len(paths), *change, list(paths))
        yield run_sql(f"NOTIFY {CHANNEL}")
