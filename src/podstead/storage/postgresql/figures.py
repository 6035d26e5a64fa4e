"""Statements that record the figures of the store anew, for repairs.

What a storage is charged for is the rule of ``storage/quota.py``.
"""

from __future__ import annotations

from typing import Final

from podstead.core.identifiers import parent_container
from podstead.storage.comparisons import CHARGE
from podstead.storage.postgresql.apply import Connection, lock_key
from podstead.storage.postgresql.comparisons import COMPARISONS, COUNTED

_MISPLACED: Final = f"SELECT r.path FROM resources r WHERE r.root = %s AND {COMPARISONS.misplaced}"  # noqa: S608
_CONTAIN: Final = "UPDATE resources SET container = %s WHERE root = %s AND path = %s"
_COUNT_MEMBERS: Final = (
    "UPDATE resources c SET member_count = counted.actual FROM"  # noqa: S608 - our words
    f" ({COUNTED} AND k.root = %s GROUP BY k.root, k.path) AS counted"
    " WHERE c.root = counted.root AND c.path = counted.path"
    " AND counted.recorded <> counted.actual"
)
_SUM_USAGE: Final = f"""
    UPDATE storages SET used_bytes =
        coalesce((SELECT sum({CHARGE}) FROM resources r WHERE r.root = %s), 0)
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
    misplaced = await connection.execute(_MISPLACED.encode(), (root,))
    for (path,) in await misplaced.fetchall():
        await connection.execute(_CONTAIN, (parent_container(path), root, path))
    await connection.execute(_COUNT_MEMBERS.encode(), (root,))
    await connection.execute(_SUM_USAGE.encode(), (root, root, root, root))
