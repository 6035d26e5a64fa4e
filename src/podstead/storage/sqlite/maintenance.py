"""What does the engine store besides writes, and what does it forget in time?

Each function runs a few statements inside a writer's transaction; sweeping takes limited bites, so
that no writer waits long for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import BlobId
from podstead.storage.sqlite.statements import Row, run_in

_ADD_USED = "UPDATE storages SET used_bytes = used_bytes + ? WHERE root = ?"

BATCH_ROWS = 500
"""Rows that one transaction of a sweep removes at most."""


# --- Blobs: each is staged, or taken by a resource, or garbage --------------------------------


def stage_blob(connection: apsw.Connection, blob: BlobId, *, now_ms: int) -> None:
    """Note a blob that a write may take. Raises apsw.Error."""
    connection.execute("INSERT INTO staged (blob, staged_ms) VALUES (?, ?)", (blob, now_ms))


def discard_blob(connection: apsw.Connection, blob: BlobId) -> bool:
    """Make a staged blob garbage, due at once; False if it is not staged. Raises apsw.Error."""
    was_staged = connection.execute("DELETE FROM staged WHERE blob = ? RETURNING blob", (blob,)).get
    if was_staged is None:
        return False
    connection.execute("INSERT INTO garbage (blob, dropped_ms) VALUES (?, 0)", (blob,))
    return True


def discard_unclaimed_blobs(connection: apsw.Connection, *, staged_before_ms: int) -> None:
    """Make blobs garbage that were staged and never taken. Raises apsw.Error."""
    connection.execute(
        "INSERT INTO garbage (blob, dropped_ms) SELECT blob, 0 FROM staged WHERE staged_ms < ?",
        (staged_before_ms,),
    )
    connection.execute("DELETE FROM staged WHERE staged_ms < ?", (staged_before_ms,))


def find_garbage(connection: apsw.Connection, *, dropped_before_ms: int) -> list[BlobId]:
    """Some blobs that are garbage for long enough. Raises apsw.Error."""
    rows: list[Row] = connection.execute(
        "SELECT blob FROM garbage WHERE dropped_ms < ? LIMIT ?", (dropped_before_ms, BATCH_ROWS)
    ).fetchall()
    return [blob for (blob,) in rows]


def delete_garbage_rows(connection: apsw.Connection, blobs: Sequence[BlobId]) -> None:
    """Forget garbage that is removed; nobody is charged for it any more. Raises apsw.Error."""
    charged = run_in(connection, "SELECT root, size_bytes FROM garbage WHERE blob IN", blobs)
    run_in(connection, "DELETE FROM garbage WHERE blob IN", blobs)
    for root, size_bytes in charged:
        if root is not None:
            connection.execute(_ADD_USED, (-size_bytes, root))


# --- Charges ----------------------------------------------------------------------------------


def put_charge(
    connection: apsw.Connection, charge: str, *, root: ResourcePath, size_bytes: int
) -> None:
    """Charge a storage for something that is no resource of it, in place of what it was charged
    for the same before; nothing for 0. Raises apsw.Error."""
    gone: list[Row] = connection.execute(
        "DELETE FROM charges WHERE charge = ? RETURNING root, size_bytes", (charge,)
    ).fetchall()
    for old_root, old_bytes in gone:
        connection.execute(_ADD_USED, (-old_bytes, old_root))
    # A storage that is gone is charged for nothing.
    if size_bytes and connection.execute("SELECT 1 FROM storages WHERE root = ?", (root,)).get:
        connection.execute(
            "INSERT INTO charges (charge, root, size_bytes) VALUES (?, ?, ?)",
            (charge, root, size_bytes),
        )
        connection.execute(_ADD_USED, (size_bytes, root))


# --- The change log ---------------------------------------------------------------------------


def delete_old_changes(connection: apsw.Connection, *, before_ms: int) -> bool:
    """Forget a bite of the oldest changes; whether there may be more. Raises apsw.Error.

    Goes by sequence number and stops at the first young row, so that no gap arises.
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
    """Forget what a bite of the access rules said that were deleted a while ago; whether there may
    be more. Raises apsw.Error."""
    connection.execute(
        "UPDATE deleted_acls SET content = NULL WHERE rowid IN (SELECT rowid FROM deleted_acls"
        " WHERE content IS NOT NULL AND at_ms < ? ORDER BY at_ms LIMIT ?)",
        (before_ms, BATCH_ROWS),
    )
    return connection.changes() == BATCH_ROWS


def delete_old_acls(connection: apsw.Connection, *, before_ms: int) -> bool:
    """Forget that a bite of access rules were deleted long ago, as the change log does; whether
    there may be more. Raises apsw.Error."""
    connection.execute(
        "DELETE FROM deleted_acls WHERE rowid IN (SELECT rowid FROM deleted_acls"
        " WHERE at_ms < ? ORDER BY at_ms LIMIT ?)",
        (before_ms, BATCH_ROWS),
    )
    return connection.changes() == BATCH_ROWS


# --- Entries ----------------------------------------------------------------------------------


def delete_expired_entries(connection: apsw.Connection, *, now_ms: int) -> bool:
    """Forget a bite of the entries that have expired; whether there may be more.

    Raises apsw.Error.
    """
    connection.execute(
        "DELETE FROM entries WHERE entry IN (SELECT entry FROM entries"
        " WHERE expires_ms <= ? ORDER BY expires_ms LIMIT ?)",
        (now_ms, BATCH_ROWS),
    )
    return connection.changes() == BATCH_ROWS
