"""Statements that compare recorded figures with the rows, and that record them anew.

What a storage is charged for is the rule of ``storage/quota.py``, as in migration 0006.
"""

from __future__ import annotations

from typing import Final

import apsw

from podstead.core.identifiers import parent_container
from podstead.storage.comparisons import CHARGE, CONTAINERS, Comparisons
from podstead.storage.schema import Row

_COUNT: Final = "(SELECT count(*) FROM resources m WHERE m.container = c.path)"
# "0" is the character after the slash: the range contains the root and all paths below it.
_USED: Final = f"""
    coalesce((SELECT sum({CHARGE}) FROM resources r
        WHERE r.path >= s.root AND r.path < substr(s.root, 1, length(s.root) - 1) || '0'), 0)
    + coalesce((SELECT sum(g.size_bytes) FROM garbage g WHERE g.root = s.root), 0)
    + coalesce((SELECT sum(h.size_bytes) FROM charges h WHERE h.root = s.root), 0)
"""  # noqa: S608 - our words

_WRONG_MEMBER_COUNTS: Final = (
    f"SELECT c.path, c.member_count, {_COUNT} FROM resources c"  # noqa: S608 - our words
    f" WHERE c.kind IN {CONTAINERS} AND c.member_count <> {_COUNT} ORDER BY c.path"
)
_WRONG_USAGE: Final = (
    f"SELECT root, used_bytes, actual FROM (SELECT s.root, s.used_bytes, {_USED} AS actual"  # noqa: S608
    " FROM storages s) WHERE used_bytes <> actual ORDER BY root"
)
COMPARISONS: Final = Comparisons(("path",), "instr", _WRONG_MEMBER_COUNTS, _WRONG_USAGE)
_MISPLACED: Final = f"SELECT r.path FROM resources r WHERE {COMPARISONS.misplaced}"  # noqa: S608


def recount(connection: apsw.Connection) -> None:
    """Record containers, numbers of members and usage of storages as they are. Raises
    apsw.Error."""
    misplaced: list[Row] = connection.execute(_MISPLACED).fetchall()
    for (path,) in misplaced:
        connection.execute(
            "UPDATE resources SET container = ? WHERE path = ?", (parent_container(path), path)
        )
    for path, _, actual in connection.execute(_WRONG_MEMBER_COUNTS).fetchall():
        connection.execute("UPDATE resources SET member_count = ? WHERE path = ?", (actual, path))
    for root, _, actual in connection.execute(_WRONG_USAGE).fetchall():
        connection.execute("UPDATE storages SET used_bytes = ? WHERE root = ?", (actual, root))
