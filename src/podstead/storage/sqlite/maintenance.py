"""The statements of this engine for maintenance and removals (:mod:`podstead.storage.maintenance`,
:mod:`podstead.storage.removal`), and the records of blobs. What is in a pod is a range of paths.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Final

import apsw

from podstead.core.identifiers import ResourcePath
from podstead.storage.maintenance import BATCH_ROWS, Maintenance
from podstead.storage.records import BlobId, ChangeType, ResourceKind
from podstead.storage.removal import PendingRemoval, PodRemovals
from podstead.storage.schema import Row
from podstead.storage.sqlite.statements import run_in
from podstead.storage.steps import SqlStatement, Steps, query, run_sql
from podstead.storage.tables import CHANGES, DELETED_ACLS, end_of

_ADD_USED = "UPDATE storages SET used_bytes = used_bytes + ? WHERE root = ?"

# --- Blobs: each is staged, or taken by a resource, or garbage --------------------------------


def stage_blobs(connection: apsw.Connection, blobs: Sequence[BlobId]) -> None:
    """Record blobs that a write may use. Raises apsw.Error."""
    now_ms = time.time_ns() // 1_000_000
    connection.executemany(
        "INSERT INTO staged (blob, staged_ms) VALUES (?, ?)", [(blob, now_ms) for blob in blobs]
    )


def renew_blobs(connection: apsw.Connection, blobs: Sequence[BlobId]) -> None:
    """Stage those of the blobs anew that are staged. Raises apsw.Error."""
    now_ms = time.time_ns() // 1_000_000
    connection.executemany(
        "UPDATE staged SET staged_ms = ? WHERE blob = ?", [(now_ms, blob) for blob in blobs]
    )


def discard_blobs(connection: apsw.Connection, blobs: Sequence[BlobId]) -> list[BlobId]:
    """Make garbage of those of the blobs that are staged, and return them. Raises apsw.Error."""
    return [blob for blob in blobs if _discard_blob(connection, blob)]


def _discard_blob(connection: apsw.Connection, blob: BlobId) -> bool:
    was_staged = connection.execute("DELETE FROM staged WHERE blob = ? RETURNING blob", (blob,)).get
    if was_staged is None:
        return False
    connection.execute("INSERT INTO garbage (blob, dropped_ms) VALUES (?, 0)", (blob,))
    return True


def discard_unclaimed_blobs(connection: apsw.Connection, *, staged_before_ms: int) -> None:
    """Make garbage of blobs that were staged but never used. Raises apsw.Error."""
    connection.execute(
        "INSERT INTO garbage (blob, dropped_ms) SELECT blob, 0 FROM staged WHERE staged_ms < ?",
        (staged_before_ms,),
    )
    connection.execute("DELETE FROM staged WHERE staged_ms < ?", (staged_before_ms,))


def find_garbage(connection: apsw.Connection, *, dropped_before_ms: int) -> list[BlobId]:
    """A batch of blobs that have been garbage since before that time. Raises apsw.Error."""
    rows: list[Row] = connection.execute(
        "SELECT blob FROM garbage WHERE dropped_ms < ? LIMIT ?", (dropped_before_ms, BATCH_ROWS)
    ).fetchall()
    return [blob for (blob,) in rows]


def delete_garbage_rows(connection: apsw.Connection, blobs: Sequence[BlobId]) -> None:
    """Delete the rows of blobs that were removed, and end the charges for those that earlier
    versions dropped. Raises apsw.Error."""
    charged = run_in(connection, "SELECT root, size_bytes FROM garbage WHERE blob IN", blobs)
    run_in(connection, "DELETE FROM garbage WHERE blob IN", blobs)
    for root, size_bytes in charged:
        if root is not None:
            connection.execute(_ADD_USED, (-size_bytes, root))


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
