"""How does the server change its own records? Read, compute, commit, and retry after a conflict.

Whoever keeps records (:mod:`podstead.storage.registry`) needs the store, the time and random values
together, so one :class:`RecordStore` carries all three.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import Overloaded
from podstead.storage.codes import StorageCodes
from podstead.storage.protocol import Store
from podstead.storage.records import Committed, Precondition, Record, Version, Write, random_version
from podstead.storage.registry import RecordKind, Value, Versioned

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
    records: Sequence[Record] = ()
    preconditions: Sequence[Precondition] = ()


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

    def new_version(self) -> Version:
        """The version of one write."""
        return random_version(self.randomness)

    async def read(self, kind: RecordKind[Value], key: str) -> Versioned[Value] | None:
        """The record, unless there is none or it has expired. Raises StorageError."""
        return await kind.read(self.store, key, now_ms=self.now_ms())

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
        records: Iterable[Record],
        preconditions: Iterable[Precondition] = (),
        *,
        busy: str | None = None,
    ) -> None:
        """Make the changes durable. Raises Contention with the message ``busy`` if a precondition
        does not hold, Overloaded, StorageError."""
        if not await self.try_commit(records, preconditions):
            raise Contention(busy)

    async def try_commit(
        self, records: Iterable[Record], preconditions: Iterable[Precondition] = ()
    ) -> bool:
        """Make the changes durable; returns False and changes nothing if a precondition does not
        hold. Without any records there is nothing to write, and no precondition is checked. Raises
        StorageError, Overloaded."""
        changed = tuple(records)
        if not changed:
            return True
        write = Write(
            version=self.new_version(),
            at_ms=self.now_ms(),
            preconditions=tuple(preconditions),
            records=changed,
        )
        return isinstance(await self.store.commit(write), Committed)

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

    async def transact(self, compute: Callable[[], Awaitable[Changes[Result]]]) -> Result:
        """Commit what ``compute`` reads and decides, and return its result. If a precondition does
        not hold, ``compute`` runs again, up to :data:`MAX_ATTEMPTS` times in all. Raises
        Contention after that; Overloaded, StorageError, and what ``compute`` raises."""
        for _ in range(MAX_ATTEMPTS):
            changes = await compute()
            if await self.try_commit(changes.records, changes.preconditions):
                return changes.result
        raise Contention
