"""What a check reads from a database of either engine: the same questions, in its own SQL."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.comparisons import BLOB_NAMES, Comparisons
from podstead.storage.inspection import (
    DamagedBody,
    LargeBody,
    StoreCounts,
    StoredAcl,
    WrongFigure,
)
from podstead.storage.migrations import Migrations
from podstead.storage.records import BlobId, Entry, EntryId, ResourceKind, Version
from podstead.storage.steps import Begin, Result


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
            "SELECT (SELECT count(*) FROM pods), count(*), count(blob),"
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
            "SELECT path, blob, size_bytes FROM resources WHERE blob IS NOT NULL ORDER BY path"
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


def _is_of(content: bytes, sha256: bytes | None) -> bool:
    # The first versions of the SQLite engine stored no hash.
    return sha256 is None or hashlib.sha256(content).digest() == sha256
