"""How do parts of the server keep records of their own? Typed values as entries of the store.

Each kind of record has a name and a shape. Secrets are never keys or values: what identifies a
record to its holder, such as a session's id or a refresh token, is kept as its SHA-256 (A-185).
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
    """The key under which what this secret gives access to is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Versioned(Generic[Value]):
    """A record as it is kept now; relying on ``at`` makes a write fail if it changes."""

    key: str
    value: Value
    at: EntryAt
    owner: str | None
    expires_ms: int | None

    @property
    def version(self) -> Version:
        return self.at.version


class Records(Generic[Value]):
    """One kind of record."""

    def __init__(self, kind: str, shape: type[Value]) -> None:
        self.kind = kind
        self._decoder = msgspec.json.Decoder(shape)

    async def read(self, store: EntryRegistry, key: str, *, now_ms: int) -> Versioned[Value] | None:
        """The record, unless there is none or it has expired. Raises StorageError."""
        entry = await store.read_entry(self._id(key), now_ms=now_ms)
        return None if entry is None else self._versioned(entry)

    async def of_owner(
        self, store: EntryRegistry, owner: str, *, now_ms: int, limit: int = 1000
    ) -> Sequence[Versioned[Value]]:
        """Those that belong to ``owner``. Raises StorageError."""
        listed = await store.list_entries(self.kind, owner=owner, limit=limit, now_ms=now_ms)
        return [self._versioned(entry) for entry in listed]

    async def page(
        self, store: EntryRegistry, *, after: str = "", now_ms: int, limit: int = 1000
    ) -> Sequence[Versioned[Value]]:
        """Some of all, by key, from behind the key ``after``. Raises StorageError."""
        start = self._id(after) if after else ""
        listed = await store.list_entries(self.kind, after=start, limit=limit, now_ms=now_ms)
        return [self._versioned(entry) for entry in listed]

    async def sample(
        self, store: EntryRegistry, *, start: str, now_ms: int, limit: int
    ) -> Sequence[Versioned[Value]]:
        """Some of all, from behind the key ``start`` and on from the first: where keys are random
        and ``start`` is too, any may be among them. Raises StorageError."""
        found = await self.page(store, after=start, now_ms=now_ms, limit=limit)
        if len(found) < limit:
            more = await self.page(store, now_ms=now_ms, limit=limit - len(found))
            found = [*found, *(each for each in more if each.key <= start)]
        return found

    async def count(self, store: EntryCounts, *, at_most: int) -> int:
        """How many there are, or ``at_most`` if there are more. Raises StorageError."""
        return await store.count_entries(self.kind, at_most=at_most)

    def put(
        self, key: str, value: Value, *, owner: str | None = None, expires_ms: int | None = None
    ) -> PutEntry:
        """Make or replace the record."""
        return PutEntry(self._id(key), msgspec.json.encode(value), owner, expires_ms)

    def replace(self, kept: Versioned[Value], value: Value) -> PutEntry:
        """The same record with another value."""
        return self.put(kept.key, value, owner=kept.owner, expires_ms=kept.expires_ms)

    def drop(self, key: str) -> DropEntry:
        """Remove the record, if it is there."""
        return DropEntry(self._id(key))

    def absent(self, key: str) -> NoEntry:
        """That there is no such record."""
        return NoEntry(self._id(key))

    def _id(self, key: str) -> EntryId:
        return EntryId(f"{self.kind}/{key}")

    def _versioned(self, entry: Entry) -> Versioned[Value]:
        try:
            value = self._decoder.decode(entry.value)
        except msgspec.DecodeError as error:
            raise StorageError(f"A record of kind {self.kind} is damaged") from error
        return Versioned(
            key=entry.entry.removeprefix(f"{self.kind}/"),
            value=value,
            at=EntryAt(entry.entry, entry.version),
            owner=entry.owner,
            expires_ms=entry.expires_ms,
        )
