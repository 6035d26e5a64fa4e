"""The checks of a worker, which say whether it is ready: its store, the disk and the clock."""

import asyncio
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.clock import Clock
from podstead.core.errors import DiskFull, ServerTrouble
from podstead.core.messages import counted
from podstead.storage.disk_space import DiskSpace
from podstead.storage.protocol import Store

MAX_CLOCK_LAG_MS: Final = 60_000
"""A clock that is behind the newest stored change by more than this has been set back."""


class Check(msgspec.Struct, frozen=True):
    """What one check has found."""

    ok: bool
    detail: str


Checks = dict[str, Check]
"""By what was checked."""


@dataclass(frozen=True, slots=True)
class WorkerChecks:
    """Checks what a worker needs in order to answer requests."""

    store: Store
    space: DiskSpace
    clock: Clock

    async def run(self) -> Checks:
        """Run all checks. Raises nothing."""
        try:
            newest_ms = await newest_change_ms(self.store)
        except ServerTrouble as error:
            failed = Check(ok=False, detail=str(error))
            return {"store": failed, "disk": await asyncio.to_thread(self._disk)}
        return {
            "store": Check(ok=True, detail="The store can be read."),
            "disk": await asyncio.to_thread(self._disk),
            "clock": check_clock(self.clock.now_ms(), newest_ms),
        }

    def _disk(self) -> Check:
        return check_disk(self.space)


def check_disk(space: DiskSpace) -> Check:
    """Whether new content is stored."""
    try:
        space.forget_reading()
        space.check()
    except DiskFull:
        return Check(ok=False, detail="There is too little free space: nothing new is stored.")
    return Check(ok=True, detail=f"{space.free_bytes() // 2**20:,} MiB are free.")


def check_clock(now_ms: int, newest_ms: int | None) -> Check:
    """Whether the clock is not behind the newest stored change."""
    lag_ms = 0 if newest_ms is None else newest_ms - now_ms
    if lag_ms > MAX_CLOCK_LAG_MS:
        behind = counted(lag_ms // 1000, "second")
        return Check(ok=False, detail=f"The clock is {behind} behind the newest stored change.")
    return Check(ok=True, detail="The clock is not behind the newest stored change.")


async def newest_change_ms(store: Store) -> int | None:
    """When the newest change was stored; ``None`` if there is none. Raises StorageError."""
    newest = await store.newest_sequence()
    rows = await store.changes_after(newest - 1, limit=1)
    return rows[-1].at_ms if rows else None
