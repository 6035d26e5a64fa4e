"""The tables and columns that both engines have, and that a copy takes along.

A copy leaves out what is listed in ``LEFT_OUT``: each engine keeps that for itself, or it means
nothing to another server. A test compares this list with the migrations of both engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

RecordRow = tuple[Any, ...]
"""The values of one row, in the order of the columns of its table."""


class ColumnType(Enum):
    """The types of columns, by their names in PostgreSQL."""

    TEXT = "text"
    NUMBER = "int8"
    BYTES = "bytea"


@dataclass(frozen=True, slots=True)
class RecordTable:
    """One table. ``has_root`` says that the keys of some engines begin with the root of the storage
    that contains the path."""

    name: str
    columns: dict[str, ColumnType]
    key: tuple[str, ...]
    has_root: bool = False

    @property
    def names(self) -> str:
        """The columns, as SQL lists them."""
        return ", ".join(self.columns)

    def key_of(self, row: RecordRow) -> RecordRow:
        """The values of the key in a row."""
        names = list(self.columns)
        return tuple(row[names.index(name)] for name in self.key)

    @property
    def place_of_path(self) -> int:
        """The place of the path in rows and in keys, in a table whose keys begin with a root."""
        return self.key.index("path")


def _table(text: str, *, has_root: bool = False, key: int = 1) -> RecordTable:
    """From "name: column column#number column#bytes …", of which the first ``key`` are the key."""
    types = {"": ColumnType.TEXT, "number": ColumnType.NUMBER, "bytes": ColumnType.BYTES}
    name, _, columns = text.partition(":")
    parts = [column.partition("#") for column in columns.split()]
    found = {column: types[type_name] for column, _, type_name in parts}
    return RecordTable(name, found, tuple(list(found)[:key]), has_root)


BODIES: Final = _table("bodies: path content#bytes sha256#bytes", has_root=True)

ENTRIES: Final = _table("entries: entry version value#bytes owner expires_ms#number")

RECORD_TABLES: Final = (
    _table(
        "resources: path kind#number version content_type size_bytes#number modified_ms#number"
        " created_ms#number blob members_version members_modified_ms#number member_count#number"
        " container",
        has_root=True,
    ),
    BODIES,
    _table("staged: blob staged_ms#number"),
    _table("garbage: blob dropped_ms#number root size_bytes#number"),
    _table("storages: root used_bytes#number"),
    _table("charges: charge root size_bytes#number"),
    _table("changes: sequence#number path activity#number agent version at_ms#number"),
    _table("counters: name value#number"),
    _table(
        "deleted_acls: write_version path version content_type content#bytes at_ms#number",
        has_root=True,
        key=2,
    ),
    _table("pods: folded_name name root owner created_ms#number quota_bytes#number"),
    _table("tokens: token_id pod web_id issued_s#number expires_s#number revoked_s#number"),
    ENTRIES,
    _table("facts: name value"),
)
"""In the order in which they are copied."""

LEFT_OUT: Final = frozenset(
    {"schema_version", "rate_buckets", "used_once", "private_keys", "registry_changes"}
)
"""The tables that are not copied; keys are, but not as rows, since not every engine has them."""

CHANGES_COUNTER: Final = "changes"
"""The row of ``counters`` that is copied; in others, each engine counts its own changes."""

COPYING_FACT: Final = "copying"
"""The fact that says that a copy is being made into this store, and how far it is. It is removed
when the copy is complete and verified."""

BODIES_FACT: Final = "bodies"
"""The fact that says where the large bodies are, if they are not in the data root."""

BODIES_MARK: Final = "bodies-mark"
GIT_MARK: Final = "git-mark"
"""The facts with the marks of the folders, of large bodies and of git repositories, that all nodes
with a database share."""

FACTS_OF_PLACE: Final = (COPYING_FACT, BODIES_FACT, BODIES_MARK, GIT_MARK)
"""Facts that are about one store, and not about what is in it, so that they are not copied."""

OWN_ROWS: Final = {
    "counters": f"name = '{CHANGES_COUNTER}'",
    "facts": f"name NOT IN {FACTS_OF_PLACE}",
}
"""What is copied of tables that are not copied as a whole, as a condition in SQL."""

FILLED: Final = tuple(table.name for table in RECORD_TABLES if table.name not in OWN_ROWS)
"""The tables that have no rows in an empty store."""

MOVED_WITHOUT: Final = ("lease/", "upload/")
"""How those entries begin that a move leaves behind: leases belong to running servers, and what has
arrived of an unfinished upload is kept in another way by each store of bodies."""
