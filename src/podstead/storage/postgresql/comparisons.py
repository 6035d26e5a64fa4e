"""Statements that compare recorded figures with the rows.

What a storage is charged for is the rule of ``storage/quota.py``.
"""

from __future__ import annotations

from typing import Final

from podstead.storage.quota import (
    BYTES_PER_PATH_BYTE,
    BYTES_PER_PATH_PAGE,
    MAX_SHORT_PATH_BYTES,
    PATH_PAGE_BYTES,
    RESOURCE_BYTES,
)
from podstead.storage.records import ResourceKind

CONTAINERS: Final = f"({ResourceKind.CONTAINER.value}, {ResourceKind.STORAGE.value})"
_MEMBERS: Final = f"({ResourceKind.DOCUMENT.value}, {ResourceKind.CONTAINER.value})"
CHARGE: Final = (
    f"size_bytes + CASE WHEN length(path) <= {MAX_SHORT_PATH_BYTES}"
    f" THEN {RESOURCE_BYTES} + {BYTES_PER_PATH_BYTE} * length(path)"
    f" ELSE {BYTES_PER_PATH_PAGE} * ((length(path) + {PATH_PAGE_BYTES - 1}) / {PATH_PAGE_BYTES})"
    " END"
)
BLOB_NAMES: Final = (
    "SELECT blob FROM staged UNION ALL SELECT blob FROM garbage"
    " UNION ALL SELECT blob FROM resources WHERE blob IS NOT NULL ORDER BY 1"
)
ORPHAN_BODIES: Final = (
    "SELECT b.path FROM bodies b LEFT JOIN resources r ON r.root = b.root AND r.path = b.path"
    " WHERE r.path IS NULL OR r.blob IS NOT NULL ORDER BY b.path"
)
_REST: Final = "rtrim(substr(r.path, length(r.container) + 1), '/')"
_MISPLACED: Final = (
    f"r.kind IN {_MEMBERS} AND (r.container IS NULL"
    " OR left(r.path, length(r.container)) <> r.container"
    f" OR {_REST} = '' OR strpos({_REST}, '/') > 0)"
)
"""The resource is recorded as the member of another container than the one above it."""
MISPLACED_MEMBERS: Final = f"SELECT r.path FROM resources r WHERE r.root = %s AND {_MISPLACED}"  # noqa: S608 - our words
MEMBERS_WITHOUT_CONTAINER: Final = (
    "SELECT r.path FROM resources r LEFT JOIN resources c ON c.path = r.container"  # noqa: S608
    f" AND c.root = r.root AND c.kind IN {CONTAINERS}"
    f" WHERE r.kind IN {_MEMBERS} AND c.path IS NULL OR {_MISPLACED} ORDER BY r.path"
)
COUNTED: Final = (
    "SELECT k.root, k.path, k.member_count AS recorded, count(m.path) AS actual"  # noqa: S608 - our words
    " FROM resources k LEFT JOIN resources m ON m.root = k.root AND m.container = k.path"
    f" WHERE k.kind IN {CONTAINERS}"
)
WRONG_MEMBER_COUNTS: Final = (
    f"SELECT path, recorded, actual FROM ({COUNTED} GROUP BY k.root, k.path) AS counted"  # noqa: S608
    " WHERE recorded <> actual ORDER BY path"
)
WRONG_USAGE: Final = f"""
    WITH parts AS (
        SELECT root, {CHARGE} AS size_bytes FROM resources
        UNION ALL SELECT root, size_bytes FROM garbage WHERE root IS NOT NULL
        UNION ALL SELECT root, size_bytes FROM charges
    ), sums AS (SELECT root, sum(size_bytes)::bigint AS actual FROM parts GROUP BY root)
    SELECT s.root, s.used_bytes, coalesce(sums.actual, 0) FROM storages s
    LEFT JOIN sums ON sums.root = s.root
    WHERE s.used_bytes <> coalesce(sums.actual, 0) ORDER BY s.root
"""  # noqa: S608 - our words
WRONG_ROOTS: Final = " UNION ALL ".join(
    f"SELECT path FROM {table} WHERE root <> coalesce(substring(path FROM '^/[^/]*/'), '')"  # noqa: S608
    for table in ("resources", "bodies", "deleted_acls")
)
"""Rows that are not where they are looked for. The root of "/" itself is empty."""
