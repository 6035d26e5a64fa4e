"""The bookkeeping of blobs and charges, and the deletion of old rows.

Each function runs a few statements in a transaction of the writer. Sweeps delete rows in limited
batches and skip rows that another transaction holds, so that nobody waits for them long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.storage.postgresql.apply import Connection, lock_key
from podstead.storage.records import BlobId
from podstead.storage.tables import root_of

BATCH_ROWS: Final = 500
"""The maximum number of rows that one transaction of a sweep deletes."""

REMOVAL_LOCK: Final = 0x706F_6473_686F_6C64
"""The advisory lock that a backup shares while bodies must not be removed: "podshold" in ASCII."""

HOLD_REMOVALS: Final = "SELECT pg_advisory_xact_lock_shared(%s)"

_ADD_USED: Final = "UPDATE storages SET used_bytes = used_bytes + %s WHERE root = %s"

# --- Blobs: each is staged, or taken by a resource, or garbage --------------------------------


async def stage_blobs(connection: Connection, blobs: Sequence[BlobId]) -> None:
    """Record blobs that a write may use. Raises psycopg.Error."""
    await connection.execute(
        "INSERT INTO staged (blob, staged_ms) SELECT blob, %s FROM unnest(%s::text[]) AS b (blob)",
        (time.time_ns() // 1_000_000, list(blobs)),
    )


async def renew_blobs(connection: Connection, blobs: Sequence[BlobId]) -> None:
    """Stage those of the blobs anew that are staged. Raises psycopg.Error."""
    await connection.execute(
        "UPDATE staged SET staged_ms = %s WHERE blob = ANY(%s)",
        (time.time_ns() // 1_000_000, list(blobs)),
    )


async def discard_blobs(connection: Connection, blobs: Sequence[BlobId]) -> list[BlobId]:
    """Make garbage of those of the blobs that are staged, and return them. Raises psycopg.Error."""
    cursor = await connection.execute(
        "WITH gone AS (DELETE FROM staged WHERE blob = ANY(%s) RETURNING blob)"
        " INSERT INTO garbage (blob, dropped_ms) SELECT blob, 0 FROM gone RETURNING blob",
        (list(blobs),),
    )
    return [blob for (blob,) in await cursor.fetchall()]


async def discard_unclaimed_blobs(connection: Connection, *, staged_before_ms: int) -> None:
    """Make garbage of blobs that were staged but never used. Raises psycopg.Error."""
    await connection.execute(
        "WITH gone AS (DELETE FROM staged WHERE staged_ms < %s RETURNING blob)"
        " INSERT INTO garbage (blob, dropped_ms) SELECT blob, 0 FROM gone",
        (staged_before_ms,),
    )


async def find_garbage(connection: Connection, *, dropped_before_ms: int) -> list[BlobId]:
    """A batch of blobs that have been garbage since before that time. Raises psycopg.Error."""
    cursor = await connection.execute(
        "SELECT blob FROM garbage WHERE dropped_ms < %s ORDER BY dropped_ms LIMIT %s",
        (dropped_before_ms, BATCH_ROWS),
    )
    return [blob for (blob,) in await cursor.fetchall()]


async def allows_removals(connection: Connection) -> bool:
    """Whether no backup is being made on any node, so that what is garbage by now may be removed.

    Raises psycopg.Error.
    """
    cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (REMOVAL_LOCK,))
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


async def delete_garbage_rows(connection: Connection, blobs: Sequence[BlobId]) -> None:
    """Delete the rows of blobs that were removed, and end the charges for those that earlier
    versions dropped. Raises psycopg.Error."""
    # The sums are taken from the rows that this very statement deletes, so that two nodes that have
    # removed the same blobs end each charge once.
    await connection.execute(
        "WITH gone AS (DELETE FROM garbage WHERE blob = ANY(%s) RETURNING root, size_bytes),"
        " sums AS (SELECT root, sum(size_bytes)::bigint AS size_bytes FROM gone"
        " WHERE root IS NOT NULL GROUP BY root)"
        " UPDATE storages SET used_bytes = used_bytes - sums.size_bytes FROM sums"
        " WHERE storages.root = sums.root",
        (list(blobs),),
    )


# --- Charges ----------------------------------------------------------------------------------


async def put_charge(
    connection: Connection, charge: str, *, root: ResourcePath, size_bytes: int
) -> None:
    """Set a named charge of a storage for data outside resources; 0 bytes remove it.

    Raises psycopg.Error.
    """
    # Nodes that set the same charge take turns. Otherwise, the deletion would wait for another
    # node's transaction and then miss the row that it has inserted.
    await connection.execute("SELECT FROM storages WHERE root = %s FOR UPDATE", (root,))
    cursor = await connection.execute(
        "DELETE FROM charges WHERE charge = %s RETURNING root, size_bytes", (charge,)
    )
    for old_root, old_bytes in await cursor.fetchall():
        await connection.execute(_ADD_USED, (-old_bytes, old_root))
    if not size_bytes:
        return
    grown = await connection.execute(f"{_ADD_USED} RETURNING root", (size_bytes, root))
    if await grown.fetchone() is not None:  # a deleted storage has no charges
        await connection.execute(
            "INSERT INTO charges (charge, root, size_bytes) VALUES (%s, %s, %s)",
            (charge, root, size_bytes),
        )


# --- The change log ---------------------------------------------------------------------------


async def delete_old_changes(connection: Connection, *, before_ms: int) -> bool:
    """Delete a batch of the oldest changes; whether there may be more. Raises psycopg.Error.

    Proceeds by sequence number and stops at the first newer row, so that no gap arises.
    """
    cursor = await connection.execute(
        "SELECT sequence, at_ms FROM changes ORDER BY sequence LIMIT %s", (BATCH_ROWS,)
    )
    oldest = await cursor.fetchall()
    last_old = None
    for sequence, at_ms in oldest:
        if at_ms >= before_ms:
            break
        last_old = sequence
    await connection.execute("DELETE FROM changes WHERE sequence <= %s", (last_old,))
    return len(oldest) == BATCH_ROWS and last_old == oldest[-1][0]


async def clear_old_acl_content(connection: Connection, *, before_ms: int) -> bool:
    """Clear the content of a batch of ACLs that were deleted before that time; whether there may be
    more. Raises psycopg.Error."""
    cursor = await connection.execute(
        "UPDATE deleted_acls SET content = NULL WHERE (root, write_version, path) IN"
        " (SELECT root, write_version, path FROM deleted_acls"
        " WHERE content IS NOT NULL AND at_ms < %s"
        " ORDER BY at_ms LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1",
        (before_ms, BATCH_ROWS),
    )
    return len(await cursor.fetchall()) == BATCH_ROWS


async def delete_old_acls(connection: Connection, *, before_ms: int) -> bool:
    """Delete a batch of deleted ACLs whose rows in the change log have expired; whether there may
    be more. Raises psycopg.Error."""
    cursor = await connection.execute(
        "DELETE FROM deleted_acls WHERE (root, write_version, path) IN"
        " (SELECT root, write_version, path FROM deleted_acls WHERE at_ms < %s"
        " ORDER BY at_ms LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1",
        (before_ms, BATCH_ROWS),
    )
    return len(await cursor.fetchall()) == BATCH_ROWS


# --- Entries and ephemeral rows ---------------------------------------------------------------


async def delete_expired_entries(connection: Connection, *, now_ms: int) -> bool:
    """Delete a batch of expired entries; whether there may be more. Raises psycopg.Error."""
    cursor = await connection.execute(
        "DELETE FROM entries WHERE entry IN (SELECT entry FROM entries"
        " WHERE expires_ms <= %s ORDER BY expires_ms LIMIT %s FOR UPDATE SKIP LOCKED)"
        " RETURNING 1",
        (now_ms, BATCH_ROWS),
    )
    return len(await cursor.fetchall()) == BATCH_ROWS


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


# --- Repairs ---------------------------------------------------------------------------------


async def take_orphan_body(connection: Connection, path: ResourcePath) -> bytes | None:
    """Remove and return a small body that belongs to no resource. Raises psycopg.Error."""
    key = (root_of(path), path)
    # A write that stores a resource there may be about to commit.
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(key[0]),))
    cursor = await connection.execute(
        "DELETE FROM bodies WHERE root = %s AND path = %s AND NOT EXISTS"
        " (SELECT 1 FROM resources WHERE root = %s AND path = %s AND blob IS NULL)"
        " RETURNING content",
        (*key, *key),
    )
    row = await cursor.fetchone()
    return None if row is None else bytes(row[0])
