"""Statements that record the figures of the store anew, for repairs.

What a storage is charged for is the rule of ``storage/quota.py``.
"""

from __future__ import annotations

from typing import Final

from podstead.core.identifiers import ResourcePath, parent_container
from podstead.storage.postgresql.apply import Connection, lock_key
from podstead.storage.postgresql.comparisons import CHARGE, COUNTED, MISPLACED_MEMBERS
from podstead.storage.postgresql.rows import root_of

_CONTAIN: Final = "UPDATE resources SET container = %s WHERE root = %s AND path = %s"
_COUNT_MEMBERS: Final = (
    "UPDATE resources c SET member_count = counted.actual FROM"  # noqa: S608 - our words
    f" ({COUNTED} AND k.root = %s GROUP BY k.root, k.path) AS counted"
    " WHERE c.root = counted.root AND c.path = counted.path"
    " AND counted.recorded <> counted.actual"
)
_SUM_USAGE: Final = f"""
    UPDATE storages SET used_bytes =
        coalesce((SELECT sum({CHARGE}) FROM resources WHERE root = %s), 0)
        + coalesce((SELECT sum(size_bytes) FROM garbage WHERE root = %s), 0)
        + coalesce((SELECT sum(size_bytes) FROM charges WHERE root = %s), 0)
    WHERE root = %s
"""  # noqa: S608 - our words


async def storage_roots(connection: Connection) -> list[str]:
    """The roots of all storages, and that of what is in none. Raises psycopg.Error."""
    found = await connection.execute("SELECT root FROM storages UNION SELECT '' ORDER BY root")
    return [root for (root,) in await found.fetchall()]


async def recount_storage(connection: Connection, root: str) -> None:
    """Record containers, numbers of members and usage of a storage as they are. Raises
    psycopg.Error."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(root),))
    misplaced = await connection.execute(MISPLACED_MEMBERS.encode(), (root,))
    for (path,) in await misplaced.fetchall():
        await connection.execute(_CONTAIN, (parent_container(path), root, path))
    await connection.execute(_COUNT_MEMBERS.encode(), (root,))
    await connection.execute(_SUM_USAGE.encode(), (root, root, root, root))


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
