"""Everything that a database contains, as of one moment (:mod:`podstead.storage.inspection`).

A read transaction keeps the moment. It delays no writer; only the log of the database cannot be
reused before it ends, so nothing but reading should happen meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import apsw

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.copying.tables import FACTS_OF_PLACE, RecordRow, RecordTable
from podstead.storage.inspection import (
    DamagedBody,
    LargeBody,
    OnProgress,
    StoreCounts,
    StoredAcl,
    WrongFigure,
)
from podstead.storage.private_files import sync_directory
from podstead.storage.records import BlobId, Entry, EntryId, Version
from podstead.storage.sqlite import copying, figures
from podstead.storage.sqlite.connection import BusyHandler, open_reader
from podstead.storage.sqlite.migrate import read_schema_version

NEWEST_SEQUENCE: Final = "SELECT value FROM counters WHERE name = 'changes'"
_WAIT_S: Final = 10.0
_STEP_PAGES: Final = 1024
_MAX_FAULTS: Final = 100
_PRIVATE_FILE: Final = 0o600


class SqliteInspection:
    """Reads a database; with ``is_copy``, one that nobody writes to."""

    def __init__(self, database: Path, *, is_copy: bool = False) -> None:
        """Raises StorageError."""
        with _trouble(database):
            self._connection = _open_copy(database) if is_copy else open_reader(database)
            try:
                self._connection.set_busy_handler(BusyHandler(_WAIT_S))
                # Before the transaction begins, which is with its first read.
                self.moment_ms = time.time_ns() // 1_000_000
                self._connection.execute("BEGIN")
                self.schema = read_schema_version(self._connection)
            except BaseException:
                self._connection.close()
                raise
        self._database = database

    def close(self) -> None:
        self._connection.close(force=True)

    def read_fact(self, name: str) -> str | None:
        with _trouble(self._database):
            fact: str | None = self._connection.execute(
                "SELECT value FROM facts WHERE name = ?", (name,)
            ).get
        return fact

    def counts(self) -> StoreCounts:
        with _trouble(self._database):
            resources, large, size_bytes = self._connection.execute(
                "SELECT count(*), count(blob), coalesce(sum(size_bytes), 0) FROM resources"
            ).get
            pods = self._connection.execute("SELECT count(*) FROM pods").get
        return StoreCounts(pods, resources, large, size_bytes)

    def newest_sequence(self) -> int:
        with _trouble(self._database):
            newest: int = self._connection.execute(NEWEST_SEQUENCE).get
        return newest

    def large_bodies(self) -> Iterator[LargeBody]:
        with _trouble(self._database):
            for path, blob, size_bytes in self._connection.execute(
                "SELECT path, blob, size_bytes FROM resources WHERE blob IS NOT NULL ORDER BY path"
            ):
                yield LargeBody(path, blob, size_bytes)

    def entries(self, kind: str) -> Iterator[Entry]:
        with _trouble(self._database):
            # "0" is the character after the slash.
            for entry, version, value, owner, expires_ms in self._connection.execute(
                "SELECT entry, version, value, owner, expires_ms FROM entries"
                " WHERE entry >= ? AND entry < ? ORDER BY entry",
                (f"{kind}/", f"{kind}0"),
            ):
                yield Entry(EntryId(entry), Version(version), value, owner, expires_ms)

    def copy_to(self, target: str, on_progress: OnProgress) -> None:
        with _trouble(Path(target)):
            os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE))
            copy = apsw.Connection(target, flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                # Its source is the open transaction, so other processes' writes do not restart it.
                with copy.backup("main", self._connection, "main") as backup:
                    while not backup.done:
                        backup.step(_STEP_PAGES)
                        on_progress(backup.page_count - backup.remaining, backup.page_count)
                copy.execute(f"DELETE FROM facts WHERE name IN {FACTS_OF_PLACE}")  # noqa: S608
                # One file, which can be read without the files of a log beside it.
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()
            finally:
                copy.close()
            sync_directory(Path(target).parent)

    def integrity_faults(self, *, is_quick: bool = False) -> Sequence[str]:
        check = "quick_check" if is_quick else "integrity_check"
        try:
            rows = self._connection.execute(f"PRAGMA {check}({_MAX_FAULTS})").fetchall()
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return [str(error)]
        except apsw.Error as error:
            raise _error(self._database, error) from error
        return [str(fault) for (fault,) in rows if fault != "ok"]

    def damaged_small_bodies(self) -> Iterator[DamagedBody]:
        for path, size_bytes, content, sha256 in self._rows(
            "SELECT r.path, r.size_bytes, b.content, b.sha256 FROM resources r"
            " LEFT JOIN bodies b ON b.path = r.path WHERE r.blob IS NULL ORDER BY r.path"
        ):
            if content is None or len(content) != size_bytes or not _is_of(content, sha256):
                yield DamagedBody(path, content)

    def orphan_small_bodies(self) -> Iterator[ResourcePath]:
        yield from (path for (path,) in self._rows(figures.ORPHAN_BODIES))

    def blob_names(self) -> Iterator[BlobId]:
        yield from (blob for (blob,) in self._rows(figures.BLOB_NAMES))

    def acls(self) -> Iterator[StoredAcl]:
        for path, version, content_type, content, blob in self._rows(
            "SELECT r.path, r.version, r.content_type, b.content, r.blob FROM resources r"
            " LEFT JOIN bodies b ON b.path = r.path WHERE r.kind = 4 ORDER BY r.path"
        ):
            yield StoredAcl(path, version, content_type, content, blob)

    def members_without_container(self) -> Iterator[ResourcePath]:
        yield from (path for (path,) in self._rows(figures.MEMBERS_WITHOUT_CONTAINER))

    def wrong_member_counts(self) -> Iterator[WrongFigure]:
        for path, recorded, actual in self._rows(figures.WRONG_MEMBER_COUNTS):
            yield WrongFigure(path, recorded, actual)

    def wrong_usage(self) -> Iterator[WrongFigure]:
        for root, recorded, actual in self._rows(figures.WRONG_USAGE):
            yield WrongFigure(root, recorded, actual)

    def rows(self, table: RecordTable, *, after: RecordRow | None = None) -> Iterator[RecordRow]:
        with _trouble(self._database):
            yield from copying.select_rows(self._connection, table, after)

    def row_count(self, table: RecordTable) -> int:
        with _trouble(self._database):
            return copying.count_rows(self._connection, table)

    def _rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        with _trouble(self._database):
            yield from self._connection.execute(statement)


def _is_of(content: bytes, sha256: bytes | None) -> bool:
    return sha256 is None or hashlib.sha256(content).digest() == sha256


def _open_copy(database: Path) -> apsw.Connection:
    # Immutable: no lock, and no file of a log, which a copy on read-only media could not have.
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"file:{quote(str(database.absolute()))}?immutable=1", flags=flags)


@contextmanager
def _trouble(database: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise _error(database, error) from error


def _error(database: Path, error: Exception) -> StorageError:
    return StorageError(f"{database} could not be read or copied: {error}")
