"""The bookkeeping of blobs and charges, and the deletion of old rows.

Each function runs a few statements in a transaction of the writer. Sweeps delete rows in limited
batches, so that no writer waits long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import apsw

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import BlobId
from podstead.storage.sqlite.statements import run_in
from podstead.storage.tables import Row

_ADD_USED = "UPDATE storages SET used_bytes = used_bytes + ? WHERE root = ?"

BATCH_ROWS = 500
"""The maximum number of rows that one transaction of a sweep deletes."""

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


# --- Charges ----------------------------------------------------------------------------------


def put_charge(
    connection: apsw.Connection, charge: str, *, root: ResourcePath, size_bytes: int
) -> None:
    """Set a named charge of a storage for data outside resources; 0 bytes remove it.

    Raises apsw.Error.
    """
    gone: list[Row] = connection.execute(
        "DELETE FROM charges WHERE charge = ? RETURNING root, size_bytes", (charge,)
    ).fetchall()
    for old_root, old_bytes in gone:
        connection.execute(_ADD_USED, (-old_bytes, old_root))
    # A deleted storage has no charges.
    if size_bytes and connection.execute("SELECT 1 FROM storages WHERE root = ?", (root,)).get:
        connection.execute(
            "INSERT INTO charges (charge, root, size_bytes) VALUES (?, ?, ?)",
            (charge, root, size_bytes),
        )
        connection.execute(_ADD_USED, (size_bytes, root))


# --- The change log ---------------------------------------------------------------------------


def delete_old_changes(connection: apsw.Connection, *, before_ms: int) -> bool:
    """Delete a batch of the oldest changes; whether there may be more. Raises apsw.Error.

    Proceeds by sequence number and stops at the first newer row, so that no gap arises.
    """
    oldest: list[Row] = connection.execute(
        "SELECT sequence, at_ms FROM changes ORDER BY sequence LIMIT ?", (BATCH_ROWS,)
    ).fetchall()
    last_old = None
    for sequence, at_ms in oldest:
        if at_ms >= before_ms:
            break
        last_old = sequence
    connection.execute("DELETE FROM changes WHERE sequence <= ?", (last_old,))
    return len(oldest) == BATCH_ROWS and last_old == oldest[-1][0]


def clear_old_acl_content(connection: apsw.Connection, *, before_ms: int) -> bool:
    """Clear the content of a batch of ACLs that were deleted before that time; whether there may be
    more. Raises apsw.Error."""
    connection.execute(
        "UPDATE deleted_acls SET content = NULL WHERE rowid IN (SELECT rowid FROM deleted_acls"
        " WHERE content IS NOT NULL AND at_ms < ? ORDER BY at_ms LIMIT ?)",
        (before_ms, BATCH_ROWS),
    )
    return connection.changes() == BATCH_ROWS


def delete_old_acls(connection: apsw.Connection, *, before_ms: int) -> bool:
    """Delete a batch of deleted ACLs whose rows in the change log have expired; whether there may
    be more. Raises apsw.Error."""
    connection.execute(
        "DELETE FROM deleted_acls WHERE rowid IN (SELECT rowid FROM deleted_acls"
        " WHERE at_ms < ? ORDER BY at_ms LIMIT ?)",
        (before_ms, BATCH_ROWS),
    )
    return connection.changes() == BATCH_ROWS


# --- Entries ----------------------------------------------------------------------------------


def delete_expired_entries(connection: apsw.Connection, *, now_ms: int) -> bool:
    """Delete a batch of expired entries; whether there may be more. Raises apsw.Error."""
    connection.execute(
        "DELETE FROM entries WHERE entry IN (SELECT entry FROM entries"
        " WHERE expires_ms <= ? ORDER BY expires_ms LIMIT ?)",
        (now_ms, BATCH_ROWS),
    )
    return connection.changes() == BATCH_ROWS


# --- Repairs ---------------------------------------------------------------------------------


def take_orphan_body(connection: apsw.Connection, path: ResourcePath) -> bytes | None:
    """Remove and return a small body that belongs to no resource. Raises apsw.Error."""
    content: bytes | None = connection.execute(
        "DELETE FROM bodies WHERE path = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM resources WHERE path = ?1 AND blob IS NULL) RETURNING content",
        (path,),
    ).get
    return content
