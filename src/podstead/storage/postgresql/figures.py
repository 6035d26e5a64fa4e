"""Statements that record the figures of the store anew, for repairs.

What a storage is charged for is the rule of ``storage/quota.py``.
"""

from __future__ import annotations

from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.storage.postgresql.apply import Connection, lock_key
from podstead.storage.postgresql.rows import root_of
from podstead.storage.quota import (
    BYTES_PER_PATH_BYTE,
    BYTES_PER_PATH_PAGE,
    MAX_SHORT_PATH_BYTES,
    PATH_PAGE_BYTES,
    RESOURCE_BYTES,
)
from podstead.storage.records import ResourceKind

_CONTAINERS: Final = f"({ResourceKind.CONTAINER.value}, {ResourceKind.STORAGE.value})"
_COUNT_MEMBERS: Final = (
    "UPDATE resources c SET member_count = counted.number FROM"  # noqa: S608 - our words
    " (SELECT k.path, count(m.path) AS number FROM resources k LEFT JOIN resources m"
    " ON m.root = k.root AND m.container = k.path"
    f" WHERE k.root = %s AND k.kind IN {_CONTAINERS} GROUP BY k.path) AS counted"
    " WHERE c.root = %s AND c.path = counted.path AND c.member_count <> counted.number"
)
_CHARGE: Final = (
    f"size_bytes + CASE WHEN length(path) <= {MAX_SHORT_PATH_BYTES}"
    f" THEN {RESOURCE_BYTES} + {BYTES_PER_PATH_BYTE} * length(path)"
    f" ELSE {BYTES_PER_PATH_PAGE} * ((length(path) + {PATH_PAGE_BYTES - 1}) / {PATH_PAGE_BYTES})"
    " END"
)
_SUM_USAGE: Final = f"""
    UPDATE storages SET used_bytes =
        coalesce((SELECT sum({_CHARGE}) FROM resources WHERE root = %s), 0)
        + coalesce((SELECT sum(size_bytes) FROM garbage WHERE root = %s), 0)
        + coalesce((SELECT sum(size_bytes) FROM charges WHERE root = %s), 0)
    WHERE root = %s
"""  # noqa: S608 - our words


async def recount(connection: Connection) -> None:
    """Record the numbers of members and the usage of storages as they are. Raises psycopg.Error."""
    found = await connection.execute("SELECT root FROM storages ORDER BY root")
    for (root,) in await found.fetchall():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(root),))
        await connection.execute(_COUNT_MEMBERS, (root, root))
        await connection.execute(_SUM_USAGE.encode(), (root, root, root, root))


async def take_orphan_body(connection: Connection, path: ResourcePath) -> bytes | None:
    """Remove and return a small body that belongs to no resource. Raises psycopg.Error."""
    key = (root_of(path), path)
    cursor = await connection.execute(
        "DELETE FROM bodies WHERE root = %s AND path = %s AND NOT EXISTS"
        " (SELECT 1 FROM resources WHERE root = %s AND path = %s AND blob IS NULL)"
        " RETURNING content",
        (*key, *key),
    )
    row = await cursor.fetchone()
    return None if row is None else bytes(row[0])
