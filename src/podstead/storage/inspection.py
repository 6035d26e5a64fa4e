"""Everything that is stored, as of one moment: what backups and checks read.

Unlike the operations of a store, these block. They are for commands, which have no event loop to
keep free, and they may read for minutes without any effect on a running server.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.core.value import Value
from podstead.storage import quota
from podstead.storage.former_states import FormerState, former_state_of
from podstead.storage.migrations import Migrations
from podstead.storage.records import BlobId, Entry, EntryId, ResourceKind, Version
from podstead.storage.schema import Row, SqlTable
from podstead.storage.steps import Begin, Result
from podstead.storage.tables import FORMER_STATES

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

    def rows(self, table: SqlTable, *, after: Row | None = None) -> Iterator[Row]:
        """The rows of a table in the engine's order of keys, after that key, without those that a
        copy leaves out. No other method may be called before the last row is read."""

    def row_count(self, table: SqlTable) -> int:
        """About how many rows there are, for progress."""

    def integrity_faults(self, *, is_quick: bool = False) -> Sequence[str]:
        """What is wrong with the file or files that the records are in; nothing if all is well.

        ``is_quick`` leaves out the comparison of indexes with what they index.
        """

    def damaged_small_bodies(self) -> Iterator[DamagedBody]:
        """The small bodies of resources that are missing or not what was stored."""

    def damaged_former_states(self) -> Iterator[FormerState]:
        """The former states whose small bodies are missing or not what was stored."""

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

    def rows_without_pod(self, table: SqlTable) -> Iterator[tuple[ResourcePath, int]]:
        """The storages of rows of a feature's table that are no pod's, with the number of rows."""


CONTAINERS: Final = f"({ResourceKind.CONTAINER.value}, {ResourceKind.STORAGE.value})"
_MEMBERS: Final = f"({ResourceKind.DOCUMENT.value}, {ResourceKind.CONTAINER.value})"
CHARGE: Final = (
    f"r.size_bytes + CASE WHEN length(r.path) <= {quota.MAX_SHORT_PATH_BYTES}"
    f" THEN {quota.RESOURCE_BYTES} + {quota.BYTES_PER_PATH_BYTE} * length(r.path)"
    f" ELSE {quota.BYTES_PER_PATH_PAGE} * ((length(r.path) + {quota.PATH_PAGE_BYTES - 1})"
    f" / {quota.PATH_PAGE_BYTES})"
    " END"
)
"""What a storage is charged for the resource ``r``."""
BLOB_NAMES: Final = (
    "SELECT blob FROM staged UNION ALL SELECT blob FROM garbage"
    " UNION ALL SELECT blob FROM resources WHERE blob IS NOT NULL"
    " UNION ALL SELECT blob FROM former_states WHERE blob IS NOT NULL ORDER BY 1"
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


class StatementInspection(ABC):
    """Implements most of Inspection by statements."""

    mark: ClassVar[str]
    """What stands for a value in a statement."""
    sql: ClassVar[Comparisons]
    migrations: ClassVar[Migrations]

    @property
    def schema(self) -> int:
        return self._run(self.migrations.number)

    def check_not_newer(self) -> None:
        self._run(self.migrations.check_not_newer)

    def check_current(self) -> None:
        self._run(self.migrations.check_current)

    def check_known(self) -> None:
        self._run(self.migrations.check_known)

    @abstractmethod
    def _run(self, begin: Begin[Result]) -> Result:
        """Run the statements of some steps. Raises StorageError."""

    @abstractmethod
    def _rows(self, statement: str, *values: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a result, which may be larger than memory. Several results may be open.
        Raises StorageError."""

    def read_fact(self, name: str) -> str | None:
        found = list(self._rows(f"SELECT value FROM facts WHERE name = {self.mark}", name))  # noqa: S608
        return found[0][0] if found else None

    def counts(self) -> StoreCounts:
        (row,) = self._rows(
            "SELECT (SELECT count(*) FROM pods), count(*),"
            " count(blob) + (SELECT count(blob) FROM former_states),"
            " CAST(coalesce(sum(size_bytes), 0) AS BIGINT) FROM resources"
        )
        return StoreCounts(*row)

    def newest_sequence(self) -> int:
        found = list(self._rows("SELECT value FROM counters WHERE name = 'changes'"))
        if not found:
            raise StorageError("The counter of the change log is missing")
        return int(found[0][0])

    def large_bodies(self) -> Iterator[LargeBody]:
        for row in self._rows(
            "SELECT path, blob, size_bytes FROM resources WHERE blob IS NOT NULL UNION ALL"
            " SELECT path, blob, size_bytes FROM former_states WHERE blob IS NOT NULL ORDER BY path"
        ):
            yield LargeBody(*row)

    def entries(self, kind: str) -> Iterator[Entry]:
        mark = self.mark
        # "0" is the character after the slash.
        for entry, version, value, owner, expires_ms in self._rows(
            "SELECT entry, version, value, owner, expires_ms FROM entries"  # noqa: S608
            f" WHERE entry >= {mark} AND entry < {mark} ORDER BY entry",
            f"{kind}/",
            f"{kind}0",
        ):
            yield Entry(EntryId(entry), Version(version), value, owner, expires_ms)

    def damaged_small_bodies(self) -> Iterator[DamagedBody]:
        for path, size_bytes, content, sha256 in self._rows(
            "SELECT r.path, r.size_bytes, b.content, b.sha256 FROM resources r"  # noqa: S608
            f" {self.sql.join_bodies} WHERE r.blob IS NULL ORDER BY {self.sql.order}"
        ):
            if content is None or len(content) != size_bytes or not _is_of(content, sha256):
                yield DamagedBody(path, content)

    def damaged_former_states(self) -> Iterator[FormerState]:
        select = FORMER_STATES.select("WHERE blob IS NULL ORDER BY root, path")
        for *state, content, sha256 in self._rows(select):
            found = former_state_of(state)
            if content is None or len(content) != found.size_bytes or not _is_of(content, sha256):
                yield found

    def orphan_small_bodies(self) -> Iterator[ResourcePath]:
        yield from (path for (path,) in self._rows(self.sql.orphan_bodies))

    def blob_names(self) -> Iterator[BlobId]:
        yield from (blob for (blob,) in self._rows(BLOB_NAMES))

    def acls(self) -> Iterator[StoredAcl]:
        for row in self._rows(
            "SELECT r.path, r.version, r.content_type, b.content, r.blob FROM resources r"  # noqa: S608
            f" {self.sql.join_bodies} WHERE r.kind = {ResourceKind.ACL.value} ORDER BY r.path"
        ):
            yield StoredAcl(*row)

    def members_without_container(self) -> Iterator[ResourcePath]:
        yield from (path for (path,) in self._rows(self.sql.members_without_container))

    def wrong_member_counts(self) -> Iterator[WrongFigure]:
        for row in self._rows(self.sql.wrong_member_counts):
            yield WrongFigure(*row)

    def wrong_usage(self) -> Iterator[WrongFigure]:
        for row in self._rows(self.sql.wrong_usage):
            yield WrongFigure(*row)

    def rows_without_pod(self, table: SqlTable) -> Iterator[tuple[ResourcePath, int]]:
        if table.storage is not None:
            storage = f"t.{table.storage}"
            yield from self._rows(
                f"SELECT {storage}, count(*) FROM {table.name} t LEFT JOIN pods p"  # noqa: S608
                f" ON p.root = {storage} WHERE p.root IS NULL AND {storage} IS NOT NULL"
                f" GROUP BY {storage} ORDER BY {storage}"
            )


def _is_of(content: bytes, sha256: bytes | None) -> bool:
    # The first versions of the SQLite engine stored no hash.
    return sha256 is None or hashlib.sha256(content).digest() == sha256
