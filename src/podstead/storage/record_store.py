"""Typed records of other parts of the server, stored as entries.

Each kind of record has a name and a msgspec type (:class:`RecordKind`). A :class:`RecordStore`
reads and changes them: read, compute, commit, and retry after a conflict. Secrets are never keys or
values: a record that a secret gives access to, such as a session ID or a refresh token, is stored
under the secret's SHA-256 (A-185). By a :class:`Lease`, one worker of all does what only one may.
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import Overloaded, StorageError
from podstead.storage import records as storage_records
from podstead.storage.codes import StorageCodes
from podstead.storage.protocol import EntryCounts, EntryRegistry, Store

Value = TypeVar("Value", bound=msgspec.Struct)


def secret_key(secret: str) -> str:
    """The key of the record that this secret gives access to."""
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Versioned(Generic[Value]):
    """A record as read. With the precondition ``unchanged``, a write fails if it has changed."""

    key: str
    value: Value
    unchanged: storage_records.EntryAtVersion
    owner: str | None
    expires_ms: int | None

    @property
    def entry(self) -> storage_records.EntryId:
        """The entry that stores the record."""
        return self.unchanged.entry

    @property
    def version(self) -> storage_records.Version:
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
    ) -> storage_records.PutEntry:
        """Create or replace the record."""
        return storage_records.PutEntry(
            self.entry_of(key), msgspec.json.encode(value), owner, expires_ms
        )

    def replace(self, stored: Versioned[Value], value: Value) -> storage_records.PutEntry:
        """The same record with another value."""
        return self.put(stored.key, value, owner=stored.owner, expires_ms=stored.expires_ms)

    def drop(self, key: str) -> storage_records.DropEntry:
        """Remove the record, if it exists."""
        return storage_records.DropEntry(self.entry_of(key))

    def absent(self, key: str) -> storage_records.NoEntry:
        """The precondition that there is no such record."""
        return storage_records.NoEntry(self.entry_of(key))

    def entry_of(self, key: str) -> storage_records.EntryId:
        """The entry that stores the record with that key."""
        return storage_records.EntryId(f"{self.kind}/{key}")

    def _versioned(self, entry: storage_records.Entry) -> Versioned[Value]:
        try:
            value = self._decoder.decode(entry.value)
        except msgspec.DecodeError as error:
            raise StorageError(f"A record of kind {self.kind} is damaged") from error
        return Versioned(
            key=entry.entry.removeprefix(f"{self.kind}/"),
            value=value,
            unchanged=storage_records.EntryAtVersion(entry.entry, entry.version),
            owner=entry.owner,
            expires_ms=entry.expires_ms,
        )


MAX_ATTEMPTS: Final = 4
"""How often a change is computed before the requests that get in its way are too many."""

Result = TypeVar("Result")


class Contention(Overloaded):
    """Other requests changed what a change relied on; nothing was changed."""

    code = StorageCodes.BUSY


@dataclass(frozen=True, slots=True)
class Changes(Generic[Result]):
    """What follows from records that were read: ``records`` to write if every precondition in
    ``preconditions`` still holds, and the ``result`` to return once they are written."""

    result: Result
    records: Sequence[storage_records.Record] = ()
    preconditions: Sequence[storage_records.Precondition] = ()


class RecordStore:
    """Reads records of any kind and changes them, several in one write."""

    def __init__(self, store: Store, clock: Clock, randomness: Randomness) -> None:
        self.store = store
        self.clock = clock
        self.randomness = randomness

    def now_ms(self) -> int:
        """Unix time in milliseconds."""
        return self.clock.now_ms()

    def now_s(self) -> int:
        """Unix time in whole seconds."""
        return self.clock.now_ms() // 1000

    def new_version(self) -> storage_records.Version:
        """The version of one write."""
        return storage_records.random_version(self.randomness)

    async def read(self, kind: RecordKind[Value], key: str) -> Versioned[Value] | None:
        """The record, unless there is none or it has expired. Raises StorageError."""
        return await kind.read(self.store, key, now_ms=self.now_ms())

    async def value(self, kind: RecordKind[Value], key: str) -> Value | None:
        """The value of the record, unless there is none or it has expired. Raises StorageError."""
        stored = await self.read(kind, key)
        return None if stored is None else stored.value

    async def each(
        self, kind: RecordKind[Value], *, after: str = ""
    ) -> AsyncIterator[Versioned[Value]]:
        """All records of a kind in the order of their keys, after ``after``. Raises
        StorageError."""
        while page := await kind.page(self.store, after=after, now_ms=self.now_ms()):
            for stored in page:
                yield stored
            after = page[-1].key

    async def of_owner(
        self, kind: RecordKind[Value], owner: str, *, limit: int = 1000
    ) -> Sequence[Versioned[Value]]:
        """Those that belong to ``owner``. Raises StorageError."""
        return await kind.of_owner(self.store, owner, now_ms=self.now_ms(), limit=limit)

    async def take(self, key: str, *, capacity: int, period_s: int) -> int | None:
        """Take one of ``capacity`` in ``period_s`` seconds; if none is left, return how many
        seconds to wait for the next. Raises StorageError."""
        return await self.store.take(
            key, capacity=capacity, per_s=capacity / period_s, now_ms=self.now_ms()
        )

    async def commit(
        self,
        records: Iterable[storage_records.Record],
        preconditions: Iterable[storage_records.Precondition] = (),
        *,
        busy: str | None = None,
    ) -> None:
        """Make the changes durable. Raises Contention with the message ``busy`` if a precondition
        does not hold, Overloaded, StorageError."""
        if not await self.try_commit(records, preconditions):
            raise Contention(busy)

    async def try_commit(
        self,
        records: Iterable[storage_records.Record],
        preconditions: Iterable[storage_records.Precondition] = (),
    ) -> bool:
        """Make the changes durable; returns False and changes nothing if a precondition does not
        hold. Without any records there is nothing to write, and no precondition is checked. Raises
        StorageError, Overloaded."""
        changed = tuple(records)
        if not changed:
            return True
        write = storage_records.Write(
            version=self.new_version(),
            at_ms=self.now_ms(),
            preconditions=tuple(preconditions),
            records=changed,
        )
        return isinstance(await self.store.commit(write), storage_records.Committed)

    async def update(
        self, kind: RecordKind[Value], key: str, change: Callable[[Value], Value]
    ) -> Value | None:
        """Replace the value of a record by what ``change`` computes from it, and return that;
        ``None`` if there is no such record. Raises Contention, Overloaded, StorageError, and what
        ``change`` raises."""

        async def compute() -> Changes[Value | None]:
            stored = await self.read(kind, key)
            if stored is None:
                return Changes(None)
            changed = change(stored.value)
            if changed == stored.value:
                return Changes(changed)
            return Changes(changed, [kind.replace(stored, changed)], [stored.unchanged])

        return await self.transact(compute)

    async def transact(
        self, compute: Callable[[], Awaitable[Changes[Result]]], *, attempts: int = MAX_ATTEMPTS
    ) -> Result:
        """Commit what ``compute`` reads and decides, and return its result. If a precondition does
        not hold, ``compute`` runs again, up to ``attempts`` times in all. Raises Contention after
        that; Overloaded, StorageError, and what ``compute`` raises."""
        for _ in range(attempts):
            changes = await compute()
            if await self.try_commit(changes.records, changes.preconditions):
                return changes.result
        raise Contention


LASTS_MS: Final = 20_000
"""How long it takes until another worker can take over from one that was killed."""
_RENEWED_PART: Final = 4
"""A lease is renewed when this part of it has passed."""
_KEPT_MS: Final = 24 * 60 * 60 * 1000
"""When the record of a lease that nobody wants any more is removed."""
_HOLDER_BYTES: Final = 8


class Held(msgspec.Struct, frozen=True):
    """A lease. The key of its record is its name."""

    holder: str


LEASES: Final = RecordKind("lease", Held)


class Lease:
    """One lease, as seen by one worker."""

    def __init__(self, name: str, records: RecordStore, *, lasts_ms: int = LASTS_MS) -> None:
        self._name = name
        self._records = records
        self._lasts_ms = lasts_ms
        self._holder = ""
        self._until_ms = 0
        self._seen = ""
        """The version of another worker's record when it was first seen, and when that was."""
        self._seen_ms = 0

    def lasts_for(self, duration_ms: int) -> bool:
        """Whether this worker holds the lease, and certainly will for ``duration_ms``."""
        return self._records.now_ms() + duration_ms < self._until_ms

    async def hold(self) -> bool:
        """Take the lease if no worker has it, or renew it; True if this worker holds it now. Raises
        StorageError, Overloaded."""
        if self.lasts_for(self._lasts_ms - self._lasts_ms // _RENEWED_PART):
            return True
        self._holder = self._holder or self._records.randomness.token_hex(_HOLDER_BYTES)
        now_ms = self._records.now_ms()
        stored = await self._records.read(LEASES, self._name)
        if stored is not None and stored.value.holder != self._holder and not self._is_over(stored):
            self._until_ms = 0
            return False
        preconditions: storage_records.Precondition = (
            LEASES.absent(self._name) if stored is None else stored.unchanged
        )
        record = LEASES.put(self._name, Held(self._holder), expires_ms=now_ms + _KEPT_MS)
        taken = await self._records.try_commit([record], [preconditions])
        self._until_ms = now_ms + self._lasts_ms if taken else 0
        return taken

    async def release(self) -> None:
        """Let another worker take the lease at once. Raises StorageError, Overloaded."""
        if not self._holder:
            return
        stored = await self._records.read(LEASES, self._name)
        self._until_ms = 0
        if stored is not None and stored.value.holder == self._holder:
            await self._records.try_commit([LEASES.drop(self._name)], [stored.unchanged])

    def _is_over(self, stored: Versioned[Held]) -> bool:
        """Whether another worker's lease has been seen unchanged for long enough."""
        now_ms = self._records.now_ms()
        if stored.version != self._seen:
            self._seen, self._seen_ms = stored.version, now_ms
        return now_ms - self._seen_ms >= self._lasts_ms
