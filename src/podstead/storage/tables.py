"""The tables that both engines have: their columns and keys, statements made of them, and the
values that their rows become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage.records import (
    Change,
    ChangeType,
    DeletedAcl,
    Entry,
    LoggedChange,
    Metadata,
    PodRecord,
    ResourceKind,
    TokenRecord,
)

Row = tuple[Any, ...]
"""One row as read; the reader knows the types of the selected columns."""


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

    @property
    def insert(self) -> str:
        """What an INSERT of whole rows begins with."""
        return f"INSERT INTO {self.name} ({self.names})"

    def replace(self, *, with_root: bool = False) -> str:
        """The clause that lets an INSERT replace rows with the same key, which begins with the root
        ``with_root``."""
        key = ", ".join(("root", *self.key) if with_root else self.key)
        changed = (f"{name} = excluded.{name}" for name in self.columns if name not in self.key)
        return f"ON CONFLICT ({key}) DO UPDATE SET {', '.join(changed)}"

    def key_of(self, row: Row) -> Row:
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


RESOURCES: Final = _table(
    "resources: path kind#number version content_type size_bytes#number modified_ms#number"
    " created_ms#number blob members_version members_modified_ms#number member_count#number"
    " container",
    has_root=True,
)
BODIES: Final = _table("bodies: path content#bytes sha256#bytes", has_root=True)
STORAGES: Final = _table("storages: root used_bytes#number")
CHANGES: Final = _table("changes: sequence#number path activity#number agent version at_ms#number")
DELETED_ACLS: Final = _table(
    "deleted_acls: write_version path version content_type content#bytes at_ms#number",
    has_root=True,
    key=2,
)
PODS: Final = _table("pods: folded_name name root owner created_ms#number quota_bytes#number")
TOKENS: Final = _table(
    "tokens: token_id pod web_id issued_s#number expires_s#number revoked_s#number"
)
ENTRIES: Final = _table("entries: entry version value#bytes owner expires_ms#number")
FACTS: Final = _table("facts: name value")

RECORD_TABLES: Final = (
    RESOURCES,
    BODIES,
    _table("staged: blob staged_ms#number"),
    _table("garbage: blob dropped_ms#number root size_bytes#number"),
    STORAGES,
    _table("charges: charge root size_bytes#number"),
    CHANGES,
    _table("counters: name value#number"),
    DELETED_ACLS,
    PODS,
    TOKENS,
    ENTRIES,
    FACTS,
)
"""In the order in which they are copied."""

# --- Records made of rows ---------------------------------------------------------------------

_KINDS: Final = {kind.value: kind for kind in ResourceKind}
_ACTIVITIES: Final = {activity.value: activity for activity in ChangeType}

METADATA: Final = ", ".join(Metadata.__struct_fields__)
DELETED_ACL: Final = DELETED_ACLS.names.partition(", ")[2]
POD: Final = PODS.names.partition(", ")[2]


def metadata_of(row: Sequence[Any]) -> Metadata:
    """From the columns :data:`METADATA`."""
    path, kind, *rest = row
    return Metadata(path, _KINDS[kind], *rest)


def change_of(row: Row) -> LoggedChange:
    """From the columns of :data:`CHANGES`."""
    sequence, path, activity, agent, version, at_ms = row
    return LoggedChange(sequence, Change(path, _ACTIVITIES[activity], agent), version, at_ms)


def deleted_acl_of(row: Row) -> DeletedAcl:
    """From the columns :data:`DELETED_ACL`."""
    path, version, content_type, content, at_ms = row
    known = content or b""
    metadata = Metadata(path, ResourceKind.ACL, version, content_type, len(known), at_ms, at_ms)
    return DeletedAcl(metadata, known)


def pod_of(row: Row) -> PodRecord:
    """From the columns :data:`POD`."""
    return PodRecord(*row)


def entry_of(row: Row) -> Entry:
    """From the columns of :data:`ENTRIES`."""
    return Entry(*row)


def token_of(row: Row) -> TokenRecord:
    """From the columns of :data:`TOKENS`."""
    return TokenRecord(*row)


def end_of(container: ResourcePath | str) -> str:
    """What follows all paths that begin with that of the container: "0" follows "/"."""
    return f"{container[:-1]}0"


def root_of(path: ResourcePath) -> str:
    """The first column of a key that has one: the storage that contains the path, empty for
    none."""
    return storage_root(path) or ""
