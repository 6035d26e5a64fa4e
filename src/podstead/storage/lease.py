"""Which worker does what only one may do? The one that holds the lease, while it renews it.

The clocks of nodes may differ, so no worker compares its own time with that of another: a lease is
over when its record has not changed for as long as it lasts, by the clock of whoever wants it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from podstead.storage.record_store import RecordStore
from podstead.storage.records import Precondition
from podstead.storage.registry import RecordKind, Versioned

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
        preconditions: Precondition = (
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
