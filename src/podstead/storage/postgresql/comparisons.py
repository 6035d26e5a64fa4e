"""Statements that compare recorded figures with the rows."""

from __future__ import annotations

from typing import Final

from podstead.storage.comparisons import CHARGE, CONTAINERS, Comparisons

COUNTED: Final = (
    "SELECT k.root, k.path, k.member_count AS recorded, count(m.path) AS actual"  # noqa: S608 - our words
    " FROM resources k LEFT JOIN resources m ON m.root = k.root AND m.container = k.path"
    f" WHERE k.kind IN {CONTAINERS}"
)
_WRONG_MEMBER_COUNTS: Final = (
    f"SELECT path, recorded, actual FROM ({COUNTED} GROUP BY k.root, k.path) AS counted"  # noqa: S608
    " WHERE recorded <> actual ORDER BY path"
)
_WRONG_USAGE: Final = f"""
    WITH parts AS (
        SELECT root, {CHARGE} AS size_bytes FROM resources r
        UNION ALL SELECT root, size_bytes FROM garbage WHERE root IS NOT NULL
        UNION ALL SELECT root, size_bytes FROM charges
    ), sums AS (SELECT root, sum(size_bytes)::bigint AS actual FROM parts GROUP BY root)
    SELECT s.root, s.used_bytes, coalesce(sums.actual, 0) FROM storages s
    LEFT JOIN sums ON sums.root = s.root
    WHERE s.used_bytes <> coalesce(sums.actual, 0) ORDER BY s.root
"""  # noqa: S608 - our words
COMPARISONS: Final = Comparisons(("root", "path"), "strpos", _WRONG_MEMBER_COUNTS, _WRONG_USAGE)
WRONG_ROOTS: Final = " UNION ALL ".join(
    f"SELECT path FROM {table} WHERE root <> coalesce(substring(path FROM '^/[^/]*/'), '')"  # noqa: S608
    for table in ("resources", "bodies", "deleted_acls")
)
"""Rows that are not where they are looked for. The root of "/" itself is empty."""
