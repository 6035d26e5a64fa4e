"""How does a copy write to a store, whatever its engine? Batch by batch, and with each of them a
note of how far the copy is, in the same transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import ClassVar

import msgspec

from podstead.storage.copying.rows import CopyRefused, CopyState
from podstead.storage.copying.tables import COPYING_FACT, filled_tables
from podstead.storage.schema import Row, Table
from podstead.storage.tables import FACTS


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

    def put(self, table: Table, rows: Iterable[Row], before: CopyState, after: CopyState) -> None:
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
        found = self._fetch(f"SELECT value FROM facts WHERE name = %s{locked}", COPYING_FACT)  # noqa: S608
        return found[0][0] if found else None

    def _write_note(self, note: str) -> None:
        self._fetch(f"{FACTS.insert} VALUES (%s, %s) {FACTS.replace()}", COPYING_FACT, note)

    def _remove_note(self) -> None:
        self._fetch("DELETE FROM facts WHERE name = %s", COPYING_FACT)

    def _has_no_rows(self) -> bool:
        return not any(
            self._fetch(f"SELECT 1 FROM {name} LIMIT 1")  # noqa: S608
            for name in (FACTS.name, *filled_tables())
        )

    @abstractmethod
    def _empty_tables(self) -> None: ...

    @abstractmethod
    def _add(self, table: Table, rows: Iterable[Row]) -> None: ...

    @abstractmethod
    def _tidy(self) -> None:
        """Prepare the database for its use, when everything is there."""


def _note_of(state: CopyState) -> str:
    return msgspec.json.encode(state).decode()
