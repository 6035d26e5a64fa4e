"""Typed records of other parts of the server, stored as entries.

Each kind of record has a name and a msgspec type. Secrets are never keys or values: a record that a
secret gives access to, such as a session ID or a refresh token, is stored under the secret's
SHA-256 (A-185).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from podstead.core.errors import StorageError
from podstead.storage.protocol import EntryCounts, EntryRegistry
from podstead.storage.records import DropEntry, Entry, EntryAt, EntryId, NoEntry, PutEntry, Version

Value = TypeVar("Value", bound=msgspec.Struct)


def secret_key(secret: str) -> str:
    """The key of the record that this secret gives access to."""
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Versioned(Generic[Value]):
    """A record as read. With the precondition ``unchanged``, a write fails if it has changed."""

    key: str
    value: Value
    unchanged: EntryAt
    owner: str | None
    expires_ms: int | None

    @property
    def entry(self) -> EntryId:
        """The entry that stores the record."""
        return self.unchanged.entry

    @property
    def version(self) -> Version:
        return self.unchanged.version


class RecordKind(Generic[Value]):
    """One kind of record."""

    def __init__(self, kind: str, shape: type[Value]) -> None:
        self.kind = kind
        self._decoder = msgspec.json.Decoder(shape)

    async def read(self, store: EntryRegistry, key: str, *, now_ms: int) -> Versioned[Value] | None:
        """The record; ``None`` if there is none or it has expired. Raises StorageError."""
        entry = await store.read_entry(self.entry_of(key), now_ms=now_ms)
        return None if entry is None else self._versioned(entry)

    async def of_owner(
        self, store: EntryRegistry, owner: str, *, now_ms: int, limit: int = 1000
    ) -> Sequence[Versioned[Value]]:
        """The records of ``owner``. Raises StorageError."""
        listed = await store.list_entries(self.kind, owner=owner, limit=limit, now_ms=now_ms)
        return [self._versioned(entry) for entry in listed]

    async def page(
        self, store: EntryRegistry, *, after: str = "", now_ms: int, limit: int = 1000
    ) -> Sequence[Versioned[Value]]:
        """Up to ``limit`` records in the order of their keys, after ``after``. Raises
        StorageError."""
        start = self.entry_of(after) if after else ""
        listed = await store.list_entries(self.kind, after=start, limit=limit, now_ms=now_ms)
        return [self._versioned(entry) for entry in listed]

    async def sample(
        self, store: EntryRegistry, *, start: str, now_ms: int, limit: int
    ) -> Sequence[Versioned[Value]]:
        """Up to ``limit`` records after the key ``start``, continuing with the first.

        A random sample if the keys and ``start`` are random. Raises StorageError.
        """
        found = await self.page(store, after=start, now_ms=now_ms, limit=limit)
        if len(found) < limit:
            more = await self.page(store, now_ms=now_ms, limit=limit - len(found))
            found = [*found, *(each for each in more if each.key <= start)]
        return found

    async def count(self, store: EntryCounts, *, at_most: int) -> int:
        """The number of records, or ``at_most`` if there are more. Raises StorageError."""
        return await store.count_entries(self.kind, at_most=at_most)

    def put(
        self, key: str, value: Value, *, owner: str | None = None, expires_ms: int | None = None
    ) -> PutEntry:
        """Create or replace the record."""
        return PutEntry(self.entry_of(key), msgspec.json.encode(value), owner, expires_ms)

    def replace(self, stored: Versioned[Value], value: Value) -> PutEntry:
        """The same record with another value."""
        return self.put(stored.key, value, owner=stored.owner, expires_ms=stored.expires_ms)

    def drop(self, key: str) -> DropEntry:
        """Remove the record, if it exists."""
        return DropEntry(self.entry_of(key))

    def absent(self, key: str) -> NoEntry:
        """The precondition that there is no such record."""
        return NoEntry(self.entry_of(key))

    def entry_of(self, key: str) -> EntryId:
        """The entry that stores the record with that key."""
        return EntryId(f"{self.kind}/{key}")

    def _versioned(self, entry: Entry) -> Versioned[Value]:
        try:
            value = self._decoder.decode(entry.value)
        except msgspec.DecodeError as error:
            raise StorageError(f"A record of kind {self.kind} is damaged") from error
        return Versioned(
            key=entry.entry.removeprefix(f"{self.kind}/"),
            value=value,
            unchanged=EntryAt(entry.entry, entry.version),
            owner=entry.owner,
            expires_ms=entry.expires_ms,
        )
