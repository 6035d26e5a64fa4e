"""The bookkeeping of blobs, each time a few statements in a transaction of the writer, and the
statements of this engine for :mod:`podstead.storage.maintenance`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import apsw

from podstead.core.identifiers import ResourcePath
from podstead.storage.maintenance import BATCH_ROWS, Maintenance
from podstead.storage.records import BlobId
from podstead.storage.schema import Row
from podstead.storage.sqlite.statements import run_in
from podstead.storage.steps import Steps, ask

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
        content = yield ask(
            "DELETE FROM bodies WHERE path = %s AND NOT EXISTS"
            " (SELECT 1 FROM resources WHERE path = %s AND blob IS NULL) RETURNING content",
            path,
            path,
        )
        return content[0][0] if content else None
