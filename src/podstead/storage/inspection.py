"""Everything that is stored, as of one moment: what backups and checks read.

Unlike the operations of a store, these block. They are for commands, which have no event loop to
keep free, and they may read for minutes without any effect on a running server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.core.value import Value
from podstead.storage.records import BlobId, Entry, Version
from podstead.storage.schema import Row, Table

OnProgress = Callable[[int, int], None]
"""Called with what is done and what there is to do."""


class LargeBody(Value):
    """The large body of a resource."""

    path: ResourcePath
    blob: BlobId
    size_bytes: int


class StoreCounts(Value):
    """How much is stored. ``body_bytes`` is the size of all bodies."""

    pods: int
    resources: int
    large_bodies: int
    body_bytes: int


class DamagedBody(Value):
    """A small body that is not the one that was stored; ``None`` if it is missing."""

    path: ResourcePath
    content: bytes | None


class StoredAcl(Value):
    """An ACL; ``content`` is ``None`` if it is a large body, or missing."""

    path: ResourcePath
    version: Version
    content_type: str
    content: bytes | None
    blob: BlobId | None


class WrongFigure(Value):
    """A figure that is recorded for a container or storage, and what it should be."""

    path: ResourcePath
    recorded: int
    actual: int


class Inspection(Protocol):
    """The records of a store, or of a copy of them. All methods raise StorageError."""

    @property
    def moment_ms(self) -> int:
        """Every write that was acknowledged before this time (Unix milliseconds) is included."""

    @property
    def schema(self) -> int:
        """The number of the schema (``storage/migrations``)."""

    def check_not_newer(self) -> None:
        """Raise SchemaTooNew if only a newer version knows the schema, or that of a feature."""

    def check_current(self) -> None:
        """Raise SchemaTooNew or StorageError unless all migrations have been applied."""

    def check_known(self) -> None:
        """Raise StorageError if there are tables of features that are not installed, whose rows
        :meth:`rows` does not read."""

    def close(self) -> None:
        """Release the moment. Idempotent."""

    def read_fact(self, name: str) -> str | None:
        """A fact about the server that persists between starts."""

    def counts(self) -> StoreCounts: ...

    def newest_sequence(self) -> int:
        """The sequence number of the newest row ever added to the change log."""

    def large_bodies(self) -> Iterator[LargeBody]:
        """All large bodies, in the byte order of the paths of their resources."""

    def entries(self, kind: str) -> Iterator[Entry]:
        """All entries of a kind, also expired ones."""

    def copy_to(self, target: str, on_progress: OnProgress) -> None:
        """Copy all records into a new file, durably, which the engine can inspect in turn.

        The file contains secrets' hashes and small bodies: it is readable by this account only.
        """

    def rows(self, table: Table, *, after: Row | None = None) -> Iterator[Row]:
        """The rows of a table in the engine's order of keys, after that key, without those that a
        copy leaves out. No other method may be called before the last row is read."""

    def row_count(self, table: Table) -> int:
        """About how many rows there are, for progress."""

    def integrity_faults(self, *, is_quick: bool = False) -> Sequence[str]:
        """What is wrong with the file or files that the records are in; nothing if all is well.

        ``is_quick`` leaves out the comparison of indexes with what they index.
        """

    def damaged_small_bodies(self) -> Iterator[DamagedBody]:
        """The small bodies of resources that are missing or not what was stored."""

    def orphan_small_bodies(self) -> Iterator[ResourcePath]:
        """The paths of small bodies that belong to no resource."""

    def blob_names(self) -> Iterator[BlobId]:
        """The large bodies that are staged, in use, or garbage, in the byte order of their
        names."""

    def acls(self) -> Iterator[StoredAcl]:
        """All ACLs, in the byte order of their paths."""

    def members_without_container(self) -> Iterator[ResourcePath]:
        """The resources whose container is missing, or does not list them."""

    def wrong_member_counts(self) -> Iterator[WrongFigure]:
        """The containers whose number of members is wrong."""

    def wrong_usage(self) -> Iterator[WrongFigure]:
        """The storages that are charged for more or fewer bytes than they use."""
