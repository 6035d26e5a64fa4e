"""The state on which a batch of writes is decided.

An engine loads the rows that a batch requires (:class:`RequiredRows`) into one :class:`State`,
decides the writes on it one after another (see ``decision.py``), and stores the changed rows, all
in one exclusive write transaction.
"""

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from podstead.core.identifiers import ResourcePath, parent_container, storage_root
from podstead.core.value import Value
from podstead.storage import records, schema

Key = TypeVar("Key", bound=Hashable)


class ResourceRow(Value):
    """One resource as stored by an engine: the fields of :class:`Metadata`, then those of the
    engine.

    ``container`` is the container that lists the resource, ``None`` if none does; ``member_count``
    is the number of a container's own members.
    """

    path: ResourcePath
    kind: int
    version: records.Version
    content_type: str
    size_bytes: int
    modified_ms: int
    created_ms: int
    blob: records.BlobId | None
    members_version: records.Version | None
    members_modified_ms: int | None
    member_count: int
    container: ResourcePath | None


MAX_DELETED_ACL_BYTES: Final = 1024 * 1024
"""How much of the content of deleted ACLs is kept for each storage: that of the newest ones."""

MIN_DELETED_ACL_BYTES: Final = 1024
"""What each of them counts for at least, so that there are not too many."""


class ChangeRow(NamedTuple):
    """One row of the change log as stored by an engine."""

    sequence: int
    path: ResourcePath
    activity: int
    agent: str | None
    version: records.Version
    at_ms: int


class DeletedAclRow(NamedTuple):
    """An ACL that a write deleted. ``content`` is ``None`` if the engine must copy the body that is
    stored at ``path``."""

    write_version: records.Version
    path: ResourcePath
    version: records.Version
    content_type: str
    content: bytes | None
    at_ms: int


def storages_of(deleted_acls: Iterable[DeletedAclRow]) -> set[ResourcePath]:
    """The root containers of the storages in which ACLs were deleted."""
    return {root for each in deleted_acls if (root := storage_root(each.path)) is not None}


class CopiedBody(NamedTuple):
    """The body that the database has at ``source`` before the batch, to be stored elsewhere."""

    source: ResourcePath


def folded(name: str) -> str:
    """The name of a pod for case-insensitive comparison (A-91)."""
    return name.casefold()


@dataclass(slots=True)
class RequiredRows:
    """The keys of the rows that are required for deciding some writes."""

    paths: set[ResourcePath] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    roots: set[ResourcePath] = field(default_factory=set)
    blobs: set[records.BlobId] = field(default_factory=set)
    entries: set[records.EntryId] = field(default_factory=set)
    rows: set[str] = field(default_factory=set)
    """The rows of features' tables, as texts."""

    def add(self, write: records.Write) -> None:
        """Add the keys that ``write`` requires."""
        self._add_required(write.preconditions)
        for put in write.puts:
            self._add_changed(put.path)
            if isinstance(put.body, records.StagedBlob):
                self.blobs.add(put.body.blob)
            elif isinstance(put.body, records.StoredBody):
                self.paths.add(put.body.path)
        for path in write.deletes:
            self._add_changed(path)
        for record in write.records:
            if isinstance(record, records.PodRecord | records.DropPod):
                self.pods.add(folded(record.name))
            elif isinstance(record, records.PutEntry | records.DropEntry):
                self.entries.add(record.entry)
            elif isinstance(record, records.PutRow | records.DropRow):
                self.rows.add(f"{record.table.name} {record.key}")
            elif isinstance(record, records.DropFormerState):
                self.paths.add(record.path)  # which is locked with its storage

    def _add_required(self, preconditions: Iterable[records.Precondition]) -> None:
        for precondition in preconditions:
            match precondition:
                case (
                    records.Absent()
                    | records.AtVersion()
                    | records.Present()
                    | records.MembersAtVersion()
                    | records.NoMembers()
                ):
                    self.paths.add(precondition.path)
                case records.EntryAtVersion() | records.NoEntry():
                    self.entries.add(precondition.entry)
                case records.NoPod():
                    self.pods.add(folded(precondition.name))

    def _add_changed(self, path: ResourcePath) -> None:
        self.paths.add(path)
        # The container that lists the path, and the one that lists that container.
        parent = parent_container(path)
        if parent is not None:
            self.paths.add(parent)
            grandparent = parent_container(parent)
            if grandparent is not None:
                self.paths.add(grandparent)
        root = storage_root(path)
        if root is not None:
            self.roots.add(root)


@dataclass(slots=True)
class State:
    """The stored rows that a batch requires, and what the batch has changed so far.

    The first seven fields are loaded and updated by each write; the others collect what must be
    stored. ``changed_paths`` and ``changed_entries`` are the keys that differ. A body of ``None``
    means that the database has no body for the path.
    """

    resources: dict[ResourcePath, ResourceRow | None]
    taken_pods: set[str]
    used_bytes: dict[ResourcePath, int]
    own_quotas: dict[str, int]
    """Of the pods that have a quota of their own, by the folded name."""
    staged: set[records.BlobId]
    entries: dict[records.EntryId, records.Entry | None]
    sequence: int

    changed_paths: set[ResourcePath] = field(default_factory=set)
    changed_roots: set[ResourcePath] = field(default_factory=set)
    changed_entries: set[records.EntryId] = field(default_factory=set)
    bodies: dict[ResourcePath, bytes | CopiedBody | None] = field(default_factory=dict)
    taken_blobs: list[records.BlobId] = field(default_factory=list)
    garbage: list[tuple[records.BlobId, int]] = field(default_factory=list)
    """The blobs that nothing refers to any more, and since when."""
    changes: list[ChangeRow] = field(default_factory=list)
    deleted_acls: list[DeletedAclRow] = field(default_factory=list)
    former: list[Any] = field(default_factory=list)
    """The changes of former states in their order (``former_states.py``)."""
    pods: list[records.PodRecord] = field(default_factory=list)
    dropped_pods: list[str] = field(default_factory=list)
    """By their folded names."""
    quotas: list[records.PodQuota] = field(default_factory=list)
    tokens: list[records.TokenRecord | records.TokenRevocation] = field(default_factory=list)
    rows: list[records.RowRecord] = field(default_factory=list)


def row_statements(rows: Iterable[records.RowRecord]) -> Iterator[tuple[str, schema.Row]]:
    """The statements that change the rows of features, each with its values."""
    for each in rows:
        if isinstance(each, records.PutRow):
            yield f"{each.table.insert_row} {each.table.replace()}", each.values
        elif isinstance(each, records.DropRow):
            yield each.table.delete_row, each.key
        else:
            for table in schema.feature_tables():
                if table.storage is not None:
                    yield table.move_rows, (each.new_root, each.root)


def changed_rows(
    keys: Iterable[Key], rows: Mapping[Key, Struct | None]
) -> tuple[list[tuple[Any, ...]], list[Key]]:
    """Of the rows that have changed, the values of those to store, and the keys of those to
    delete."""
    stored: list[tuple[Any, ...]] = []
    gone: list[Key] = []
    for key in keys:
        row = rows[key]
        if row is None:
            gone.append(key)
        else:
            stored.append(astuple(row))
    return stored, gone


def changed_bodies(
    state: State,
) -> tuple[list[tuple[Any, ...]], list[ResourcePath], dict[ResourcePath, ResourcePath]]:
    """The rows of bodies to store, the paths of those to delete, and the sources of copies, which
    come before the rest, since that may replace or delete their sources."""
    stored: list[tuple[Any, ...]] = []
    gone: list[ResourcePath] = []
    copies: dict[ResourcePath, ResourcePath] = {}
    for path, content in state.bodies.items():
        if content is None:
            gone.append(path)
        elif isinstance(content, CopiedBody):
            copies[path] = content.source
        else:
            stored.append((path, content, hashlib.sha256(content).digest()))
    return stored, gone, copies
