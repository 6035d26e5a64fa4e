"""Statements that compare recorded figures with the rows, as far as they are alike in both engines.

What a storage is charged for is the rule of ``storage/quota.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    f"r.size_bytes + CASE WHEN length(r.path) <= {MAX_SHORT_PATH_BYTES}"
    f" THEN {RESOURCE_BYTES} + {BYTES_PER_PATH_BYTE} * length(r.path)"
    f" ELSE {BYTES_PER_PATH_PAGE} * ((length(r.path) + {PATH_PAGE_BYTES - 1}) / {PATH_PAGE_BYTES})"
    " END"
)
"""What a storage is charged for the resource ``r``."""
BLOB_NAMES: Final = (
    "SELECT blob FROM staged UNION ALL SELECT blob FROM garbage"
    " UNION ALL SELECT blob FROM resources WHERE blob IS NOT NULL ORDER BY 1"
)
_REST: Final = "rtrim(substr(r.path, length(r.container) + 1), '/')"


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The statements of an engine: ``key`` is that of resources and bodies, and ``place`` the
    function that finds the place of a text in another."""

    key: tuple[str, ...]
    place: str
    wrong_member_counts: str
    wrong_usage: str

    @property
    def orphan_bodies(self) -> str:
        """The paths of bodies without a resource."""
        return (
            f"SELECT b.path FROM bodies b LEFT JOIN resources r ON {self._same_key('r', 'b')}"  # noqa: S608
            " WHERE r.path IS NULL OR r.blob IS NOT NULL ORDER BY b.path"
        )

    @property
    def join_bodies(self) -> str:
        """The small bodies, beside their resources."""
        return f"LEFT JOIN bodies b ON {self._same_key('b', 'r')}"

    @property
    def order(self) -> str:
        """The order of the keys of resources."""
        return ", ".join(f"r.{column}" for column in self.key)

    @property
    def misplaced(self) -> str:
        """Whether a resource is recorded as the member of another container than the one above
        it."""
        return (
            f"r.kind IN {_MEMBERS} AND (r.container IS NULL"
            " OR substr(r.path, 1, length(r.container)) <> r.container"
            f" OR {_REST} = '' OR {self.place}({_REST}, '/') > 0)"
        )

    @property
    def members_without_container(self) -> str:
        """The paths of members that no container lists, or not the one above them."""
        found = self._same_key("c", "r").replace("r.path", "r.container")
        return (
            f"SELECT r.path FROM resources r LEFT JOIN resources c ON {found}"  # noqa: S608
            f" AND c.kind IN {CONTAINERS} WHERE r.kind IN {_MEMBERS} AND c.path IS NULL"
            f" OR {self.misplaced} ORDER BY r.path"
        )

    def _same_key(self, one: str, other: str) -> str:
        return " AND ".join(f"{one}.{column} = {other}.{column}" for column in self.key)
