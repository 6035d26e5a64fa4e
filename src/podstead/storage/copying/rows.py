"""Copying the rows of one store into another, whatever their engines.

Rows are copied in the order of their keys, in batches of limited size. Each batch is one
transaction of the target, which also records how far the copy is; so a copy that was killed
continues after the last batch that is there. In the end everything is read again from both sides
and compared. A backup is a copy into one SQLite file.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import msgspec

from podstead.core.errors import PodsteadError
from podstead.storage import files, inspection
from podstead.storage import tables as storage_tables
from podstead.storage.schema import Row, SqlTable

_BATCH_ROWS: Final = 5000
_BATCH_BYTES: Final = 4 * 1024 * 1024
_ROW_BYTES: Final = 100
"""About what a row takes besides large values."""


class CopyRefused(PodsteadError):
    """Records cannot be copied from there, or to there."""


class CopyFailed(PodsteadError):
    """The target does not have what the source has."""


class RowSource(Protocol):
    """The rows of a store as of one moment. Methods raise StorageError."""

    def rows(self, table: SqlTable, *, after: Row | None = None) -> Iterator[Row]:
        """The rows of a table in the engine's order of keys, after that key.

        Leaves out what a copy does not take along (:mod:`podstead.storage.tables`).
        """

    def row_count(self, table: SqlTable) -> int:
        """About how many rows there are, for progress."""


class CopyState(msgspec.Struct, frozen=True):
    """How far a copy is. ``source`` says which records are copied, and in which state."""

    source: str
    table: str | None = None
    after: tuple[Any, ...] | None = None
    is_complete: bool = False


class RowTarget(Protocol):
    """An empty store of the current schema, or one that a copy has begun to fill."""

    def state(self) -> CopyState | None:
        """How far a copy into this store is; ``None`` if none has begun. Raises StorageError."""

    def is_empty(self) -> bool:
        """Whether nothing is stored. Raises StorageError."""

    def begin(self, state: CopyState) -> None:
        """Remove what another copy has brought, and note that one begins. Raises StorageError."""

    def put(
        self, table: SqlTable, rows: Iterable[Row], before: CopyState, after: CopyState
    ) -> None:
        """Add rows, and replace the note, in one transaction. Raises StorageError, and CopyRefused
        if the note is not ``before``: somebody else is copying to this store."""

    def finish(self, before: CopyState) -> None:
        """Remove the note: servers may use the store. Raises as :meth:`put` does."""


def copy_rows(
    source: RowSource,
    target: RowTarget,
    begun: CopyState,
    on_step: "OnRows",
    *,
    without: tuple[str, ...] = (),
) -> CopyState:
    """Copy what ``begun`` says is missing, except entries that begin with one of ``without``; the
    state after that. Raises StorageError, CopyRefused, CopyFailed."""
    tables = storage_tables.record_tables()
    names = [table.name for table in tables]
    if begun.is_complete:
        return begun
    first = 0 if begun.table is None else names.index(begun.table)
    state = begun
    for table in tables[first:]:
        after = state.after if table.name == begun.table and state is begun else None
        total, done = source.row_count(table), 0
        step = f"Copying {table.name}"
        on_step(step, 0, total)
        for batch in _batches(_checked(table, source.rows(table, after=after), without)):
            following = CopyState(begun.source, table.name, table.key_of(batch[-1]))
            target.put(table, batch, state, following)
            state, done = following, done + len(batch)
            on_step(step, done, total)
    complete = CopyState(begun.source, is_complete=True)
    target.put(tables[-1], (), state, complete)
    return complete


OnRows = Callable[[str, int, int], None]
"""Called with a step, and the rows that are done and that there are."""


def compare_rows(
    source: RowSource, target: RowSource, on_step: OnRows, *, without: tuple[str, ...] = ()
) -> None:
    """Read all rows of both, and compare them. Raises StorageError, CopyFailed."""
    for table in storage_tables.record_tables():
        step = f"Verifying {table.name}"
        total = source.row_count(table)
        shown = partial(_show, on_step, step, total)
        shown(0)
        expected = digest_of_rows(_checked(table, source.rows(table), without), shown)
        found = digest_of_rows(_checked(table, target.rows(table)), shown)
        if found != expected:
            raise CopyFailed(
                f"The copy is not the same as the source: {found.rows} rows of {table.name} instead"
                f" of {expected.rows}, or other rows. Copy again with --start-over."
            )


def _show(on_step: OnRows, step: str, total: int, done: int) -> None:
    on_step(step, done, total)


class RowsDigest(msgspec.Struct, frozen=True):
    """What is equal for equal rows in whatever order, as the engines order keys differently."""

    rows: int
    total: int


def digest_of_rows(rows: Iterable[Row], on_done: Callable[[int], None]) -> RowsDigest:
    """The number of the rows, and the sum of their hashes."""
    count = total = 0
    for row in rows:
        total += int.from_bytes(hashlib.sha256(msgspec.msgpack.encode(row)).digest())
        count += 1
        if count % _BATCH_ROWS == 0:
            on_done(count)
    return RowsDigest(count, total % 2**256)


def _checked(table: SqlTable, rows: Iterable[Row], without: tuple[str, ...] = ()) -> Iterator[Row]:
    """The rows that are copied; those of small bodies with their hash, which early versions did not
    store. Raises CopyFailed for a body that is not the one that was stored."""
    if table is storage_tables.ENTRIES:
        yield from (row for row in rows if not row[0].startswith(without))
    elif table is not storage_tables.BODIES:
        yield from rows
    else:
        for path, content, sha256 in rows:
            found = hashlib.sha256(content).digest()
            if sha256 not in {None, found}:
                raise CopyFailed(
                    f"The body of {path} is damaged. Find out more with 'podstead check'."
                )
            yield path, content, found


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size_bytes = 0
    for row in rows:
        batch.append(row)
        size_bytes += _ROW_BYTES
        size_bytes += sum(len(value) for value in row if isinstance(value, bytes))
        if len(batch) >= _BATCH_ROWS or size_bytes >= _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch


class ResumableTarget(ABC):
    """Implements RowTarget for a migrated database that nobody else uses."""

    lock_rows: ClassVar[str] = ""
    """What ends a SELECT that keeps others from changing its rows."""

    def state(self) -> CopyState | None:
        with self._trouble():
            note = self._read_note()
        return None if note is None else msgspec.json.decode(note, type=CopyState)

    def is_empty(self) -> bool:
        with self._trouble():
            return self._has_no_rows()

    def begin(self, state: CopyState) -> None:
        with self._transaction():
            self._empty_tables()
            self._write_note(_note_of(state))

    def put(
        self, table: SqlTable, rows: Iterable[Row], before: CopyState, after: CopyState
    ) -> None:
        with self._transaction():
            self._check_note(before)
            self._add(table, rows)
            self._write_note(_note_of(after))

    def finish(self, before: CopyState) -> None:
        with self._transaction():
            self._check_note(before)
            self._remove_note()
        with self._trouble():
            self._tidy()

    def _check_note(self, expected: CopyState) -> None:
        if self._read_note(is_for_update=True) != _note_of(expected):
            raise CopyRefused("Another command copies to the same place.")

    @abstractmethod
    def _trouble(self) -> AbstractContextManager[None]:
        """Raise StorageError for errors of the database."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """The same, around a transaction."""

    @abstractmethod
    def _fetch(self, statement: str, *values: str) -> list[Row]:
        """Run a statement, in which ``%s`` stands for each value, and return its rows."""

    def _read_note(self, *, is_for_update: bool = False) -> str | None:
        locked = self.lock_rows if is_for_update else ""
        found = self._fetch(
            f"SELECT value FROM facts WHERE name = %s{locked}",  # noqa: S608
            storage_tables.COPYING_FACT,
        )
        return found[0][0] if found else None

    def _write_note(self, note: str) -> None:
        self._fetch(
            f"{storage_tables.FACTS.insert} VALUES (%s, %s) {storage_tables.FACTS.replace()}",
            storage_tables.COPYING_FACT,
            note,
        )

    def _remove_note(self) -> None:
        self._fetch("DELETE FROM facts WHERE name = %s", storage_tables.COPYING_FACT)

    def _has_no_rows(self) -> bool:
        return not any(
            self._fetch(f"SELECT 1 FROM {name} LIMIT 1")  # noqa: S608
            for name in (storage_tables.FACTS.name, *storage_tables.filled_tables())
        )

    @abstractmethod
    def _empty_tables(self) -> None: ...

    @abstractmethod
    def _add(self, table: SqlTable, rows: Iterable[Row]) -> None: ...

    @abstractmethod
    def _tidy(self) -> None:
        """Prepare the database for its use, when everything is there."""


def _note_of(state: CopyState) -> str:
    return msgspec.json.encode(state).decode()


_PRIVATE_FILE: Final = 0o600


def write_records_file(source: RowSource, target: Path, on_progress: inspection.OnProgress) -> None:
    """Write all rows into a new database file, durably. Raises StorageError, CopyFailed,
    OSError."""
    from podstead.storage.sqlite import migrate  # noqa: PLC0415 - of the other engine
    from podstead.storage.sqlite.inspection import SqliteTarget, as_one_file  # noqa: PLC0415

    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE))
    migrate(target)
    state = CopyState("")
    with closing(SqliteTarget(target)) as records:
        records.begin(state)
        state = copy_rows(source, records, state, lambda _, done, total: on_progress(done, total))
        records.finish(state)
    as_one_file(target)
    files.sync_directory(target.parent)
