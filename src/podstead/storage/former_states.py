"""Former states of resources: what writes have replaced or deleted, kept for a while.

A write with :class:`~podstead.storage.records.KeepFormerStates` leaves a row of ``former_states``
for each resource that it replaces or deletes, in its own transaction and without reading anything:
what is replaced is known to whoever decides about the write, a small body is copied within the
database, and a large one belongs to the row from then on. So each large body is in exactly one
place: staged, in use, kept, or garbage.

The rows are not part of what a storage is charged for. Whoever asks for them removes them
(:class:`~podstead.storage.records.DropFormerState`); those of a deleted pod go with it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from podstead.core import identifiers, value
from podstead.storage import records
from podstead.storage.schema import Row
from podstead.storage.state import CopiedBody, ResourceRow
from podstead.storage.tables import FORMER_STATES

REPLACED: Final = 0
DELETED: Final = 1
DELETED_WITH: Final = 2
"""Deleted together with its subject or its container."""

_BODY_COLUMNS: Final = 2
_STATE_COLUMNS: Final = tuple(FORMER_STATES.columns)[:-_BODY_COLUMNS]
FORMER_STATE: Final = ", ".join(_STATE_COLUMNS)
"""The columns of a :class:`FormerState`."""


class FormerState(value.Value):
    """What is kept of one state of a resource, without its bytes.

    ``modified_ms`` is when the state began, ``ended_ms`` when it ended, by the write
    ``ended_version`` of ``agent`` through the application ``client``; ``None`` if they are not
    known. ``deleted`` is 0 if it was replaced, 1 if it was deleted, and 2 if that happened together
    with its subject or its container. ``acl`` is the path of the ACL that governed it then, and
    ``acl_version`` the version of that ACL.
    """

    root: identifiers.ResourcePath
    path: identifiers.ResourcePath
    modified_ms: int
    version: records.Version
    ended_ms: int
    ended_version: records.Version
    deleted: int
    agent: str | None
    client: str | None
    acl: identifiers.ResourcePath | None
    acl_version: records.Version | None
    kind: int
    content_type: str
    size_bytes: int
    created_ms: int
    blob: records.BlobId | None

    @property
    def drop(self) -> records.DropFormerState:
        """Removes it."""
        return records.DropFormerState(self.root, self.path, self.modified_ms, self.version)

    @property
    def metadata(self) -> records.Metadata:
        """The metadata of the resource in this state."""
        return records.Metadata(
            self.path,
            records.ResourceKind(self.kind),
            self.version,
            self.content_type,
            self.size_bytes,
            self.modified_ms,
            self.created_ms,
            self.blob,
        )


class FormerRow(NamedTuple):
    """A row to add: the values of the columns of a :class:`FormerState`, and the small body or
    where the database has it before the batch; neither for a large one."""

    state: tuple[Any, ...]
    content: bytes | None
    copied_from: identifiers.ResourcePath | None


class MovedFormerState(NamedTuple):
    """What was replaced of a resource follows it to another path in its storage. The time of its
    creation tells it from what was at its path before; ``target_created_ms`` is that of what is at
    the target from then on. What the target has already stays where it is."""

    source: identifiers.ResourcePath
    created_ms: int
    target: identifiers.ResourcePath
    target_created_ms: int

    @property
    def values(self) -> Row:
        """The values of the statement."""
        target = _rooted(self.target)
        source = (*_rooted(self.source), self.created_ms)
        return (*target, self.target_created_ms, *source, *target)


class DroppedFormer(NamedTuple):
    """A row to remove, and the time of that."""

    key: tuple[Any, ...]
    at_ms: int


FormerChange = FormerRow | MovedFormerState | DroppedFormer


class KeptStates:
    """What one write leaves of former states."""

    __slots__ = ("_deleted", "_keeps", "_rules", "_write", "rows")

    def __init__(self, write: records.Write, keeps: records.KeepFormerStates) -> None:
        self._write = write
        self._keeps = keeps
        self._rules = dict(keeps.rules)
        self._deleted = frozenset(write.deletes)
        self.rows: list[FormerRow] = []

    def add(
        self,
        old: ResourceRow,
        bodies: Mapping[identifiers.ResourcePath, bytes | CopiedBody | None],
        *,
        moves: bool,
    ) -> bool:
        """Keep what the write replaces or deletes; false if it is not to be kept.

        ``bodies`` are the small bodies that earlier writes of the batch have stored. A write that
        ``moves`` deletes what continues elsewhere in its storage.
        """
        path, write, keeps = old.path, self._write, self._keeps
        root = identifiers.storage_root(path)
        if root is None:
            return False
        is_deleted = path in self._deleted
        # Rules say who could read other states, and so they are kept whatever happens to them.
        if old.kind != records.ResourceKind.ACL.value and (
            moves or not keeps.deleted if is_deleted else not keeps.replaced
        ):
            return False
        acl = self._rules.get(path)
        state = (
            root,
            path,
            old.modified_ms,
            old.version,
            write.at_ms,
            write.version,
            self._deletion_of(path) if is_deleted else REPLACED,
            keeps.agent,
            keeps.client,
            None if acl is None else acl.path,
            None if acl is None else acl.version,
            old.kind,
            old.content_type,
            old.size_bytes,
            old.created_ms,
            old.blob,
        )
        content: bytes | None = None
        copied_from = None if old.blob is not None else path
        stored = bodies.get(path)
        if isinstance(stored, bytes):
            content, copied_from = stored, None
        elif stored is not None:
            copied_from = stored.source
        self.rows.append(FormerRow(state, content, copied_from))
        return True

    def _deletion_of(self, path: identifiers.ResourcePath) -> int:
        if path.endswith((identifiers.ACL_SUFFIX, identifiers.DESCRIPTION_SUFFIX)):
            return DELETED_WITH
        return DELETED_WITH if identifiers.parent_container(path) in self._deleted else DELETED


_INSERT: Final = f"{FORMER_STATES.insert_row} ON CONFLICT DO NOTHING"
_KEY: Final = " AND ".join(f"{name} = %s" for name in FORMER_STATES.key)
_INSERT_COPY: Final = tuple(
    f"{FORMER_STATES.insert} SELECT {'%s, ' * len(_STATE_COLUMNS)}content, sha256 FROM bodies"  # noqa: S608
    f" WHERE {which} ON CONFLICT DO NOTHING"
    for which in ("path = %s", "root = %s AND path = %s")
)
"""With the keys of bodies as they are, and with the root of the storage before them."""
_MOVE: Final = (
    "UPDATE former_states SET root = %s, path = %s, created_ms = %s"
    " WHERE root = %s AND path = %s AND created_ms = %s AND deleted = 0"
    " AND NOT EXISTS (SELECT 1 FROM former_states AS other WHERE other.root = %s"
    " AND other.path = %s AND other.modified_ms = former_states.modified_ms"
    " AND other.version = former_states.version)"
)
"""States of several resources may have the same time and version, those of one write."""
_DROP_BLOB: Final = (
    "INSERT INTO garbage (blob, dropped_ms) SELECT blob, %s FROM former_states"  # noqa: S608
    f" WHERE {_KEY} AND blob IS NOT NULL"
)
RENAME_ROOT: Final = (
    "UPDATE former_states SET root = %s, path = %s || substr(path, %s) WHERE root = %s"
)
FIND: Final = f"SELECT content, sha256 FROM former_states WHERE {_KEY}"  # noqa: S608
"""The small body of one state, by its key."""
BATCH_OF_ROOT: Final = f"SELECT {FORMER_STATE} FROM former_states WHERE root = %s LIMIT %s"  # noqa: S608
"""Some of the states of a storage."""


def former_statements(
    changes: Iterable[FormerChange], *, bodies_have_root: bool
) -> Iterator[tuple[str, Row]]:
    """The statements for the changes, each with its values. They come before those for bodies.

    The keys of bodies begin with the root of the storage if ``bodies_have_root``.
    """
    insert_copy = _INSERT_COPY[bodies_have_root]
    for each in changes:
        if isinstance(each, MovedFormerState):
            yield _MOVE, each.values
        elif isinstance(each, DroppedFormer):
            yield from drop_statements(each.key, each.at_ms)
        elif each.copied_from is not None:
            source = each.copied_from
            yield insert_copy, (*each.state, *(_rooted(source) if bodies_have_root else (source,)))
        else:
            content = each.content
            sha256 = None if content is None else hashlib.sha256(content).digest()
            yield _INSERT, (*each.state, content, sha256)


def drop_statements(key: Sequence[Any], at_ms: int) -> Iterator[tuple[str, Row]]:
    """The statements that remove a row, after which its large body is garbage."""
    yield _DROP_BLOB, (at_ms, *key)
    yield FORMER_STATES.delete_row, tuple(key)


def rename_values(root: identifiers.ResourcePath, new_root: identifiers.ResourcePath) -> Row:
    """The values of :data:`RENAME_ROOT`."""
    return new_root, new_root, len(root) + 1, root


def former_state_of(row: Sequence[Any]) -> FormerState:
    """From the columns :data:`FORMER_STATE`."""
    return FormerState(*row)


def _rooted(path: identifiers.ResourcePath) -> tuple[str, str]:
    return identifiers.storage_root(path) or "", path
