"""Statements that compare recorded figures with the rows, and that record them anew.

What a storage is charged for is the rule of ``storage/quota.py``, as in migration 0006.
"""

from __future__ import annotations

from typing import Final

import apsw

from podstead.core.identifiers import ResourcePath, parent_container
from podstead.storage.quota import (
    BYTES_PER_PATH_BYTE,
    BYTES_PER_PATH_PAGE,
    MAX_SHORT_PATH_BYTES,
    PATH_PAGE_BYTES,
    RESOURCE_BYTES,
)
from podstead.storage.records import ResourceKind
from podstead.storage.sqlite.statements import Row

_CONTAINERS: Final = f"({ResourceKind.CONTAINER.value}, {ResourceKind.STORAGE.value})"
_MEMBERS: Final = f"({ResourceKind.DOCUMENT.value}, {ResourceKind.CONTAINER.value})"
_COUNT: Final = "(SELECT count(*) FROM resources m WHERE m.container = c.path)"
_CHARGE: Final = (
    f"r.size_bytes + CASE WHEN length(r.path) <= {MAX_SHORT_PATH_BYTES}"
    f" THEN {RESOURCE_BYTES} + {BYTES_PER_PATH_BYTE} * length(r.path)"
    f" ELSE {BYTES_PER_PATH_PAGE} * ((length(r.path) + {PATH_PAGE_BYTES - 1}) / {PATH_PAGE_BYTES})"
    " END"
)
# "0" is the character after the slash: the range contains the root and all paths below it.
_USED: Final = f"""
    coalesce((SELECT sum({_CHARGE}) FROM resources r
        WHERE r.path >= s.root AND r.path < substr(s.root, 1, length(s.root) - 1) || '0'), 0)
    + coalesce((SELECT sum(g.size_bytes) FROM garbage g WHERE g.root = s.root), 0)
    + coalesce((SELECT sum(h.size_bytes) FROM charges h WHERE h.root = s.root), 0)
"""  # noqa: S608 - our words

BLOB_NAMES: Final = (
    "SELECT blob FROM staged UNION ALL SELECT blob FROM garbage"
    " UNION ALL SELECT blob FROM resources WHERE blob IS NOT NULL ORDER BY 1"
)
ORPHAN_BODIES: Final = (
    "SELECT b.path FROM bodies b LEFT JOIN resources r ON r.path = b.path"
    " WHERE r.path IS NULL OR r.blob IS NOT NULL ORDER BY b.path"
)
_MISPLACED: Final = (
    f"r.kind IN {_MEMBERS} AND (r.container IS NULL"
    " OR substr(r.path, 1, length(r.container)) <> r.container"
    " OR rtrim(substr(r.path, length(r.container) + 1), '/') = ''"
    " OR instr(rtrim(substr(r.path, length(r.container) + 1), '/'), '/') > 0)"
)
"""The resource is recorded as the member of another container than the one above it."""
MISPLACED_MEMBERS: Final = f"SELECT r.path FROM resources r WHERE {_MISPLACED}"  # noqa: S608
MEMBERS_WITHOUT_CONTAINER: Final = (
    "SELECT r.path FROM resources r LEFT JOIN resources c ON c.path = r.container"  # noqa: S608
    f" AND c.kind IN {_CONTAINERS} WHERE r.kind IN {_MEMBERS} AND c.path IS NULL"
    f" OR {_MISPLACED} ORDER BY r.path"
)
WRONG_MEMBER_COUNTS: Final = (
    f"SELECT c.path, c.member_count, {_COUNT} FROM resources c"  # noqa: S608 - our words
    f" WHERE c.kind IN {_CONTAINERS} AND c.member_count <> {_COUNT} ORDER BY c.path"
)
WRONG_USAGE: Final = (
    f"SELECT root, used_bytes, actual FROM (SELECT s.root, s.used_bytes, {_USED} AS actual"  # noqa: S608
    " FROM storages s) WHERE used_bytes <> actual ORDER BY root"
)


def recount(connection: apsw.Connection) -> None:
    """Record containers, numbers of members and usage of storages as they are. Raises
    apsw.Error."""
    misplaced: list[Row] = connection.execute(MISPLACED_MEMBERS).fetchall()
    for (path,) in misplaced:
        connection.execute(
            "UPDATE resources SET container = ? WHERE path = ?", (parent_container(path), path)
        )
    for path, _, actual in connection.execute(WRONG_MEMBER_COUNTS).fetchall():
        connection.execute("UPDATE resources SET member_count = ? WHERE path = ?", (actual, path))
    for root, _, actual in connection.execute(WRONG_USAGE).fetchall():
        connection.execute("UPDATE storages SET used_bytes = ? WHERE root = ?", (actual, root))


def take_orphan_body(connection: apsw.Connection, path: ResourcePath) -> bytes | None:
    """Remove and return a small body that belongs to no resource. Raises apsw.Error."""
    content: bytes | None = connection.execute(
        "DELETE FROM bodies WHERE path = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM resources WHERE path = ?1 AND blob IS NULL) RETURNING content",
        (path,),
    ).get
    return content
