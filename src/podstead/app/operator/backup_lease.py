"""Which node makes the next backup of a series?

Any node that shares a PostgreSQL database may run ``podstead backup --every``. The nodes that do so
with the same folder, which may be a disk of their own at the same path, make one backup for all of
them: one makes it while it holds a lease, and the others read from a record that it was made.

A backup keeps its event loop busy for long, so the lease is renewed by another one, in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from podstead.app.operator.data_root import opened_records
from podstead.config import Settings
from podstead.core.errors import ServerTrouble
from podstead.storage.lease import Lease
from podstead.storage.registry import RecordKind

_RENEWAL_S: Final = 2.0
"""How often the lease is asked for, or renewed."""


class LatestBackup(msgspec.Struct, frozen=True):
    """When the latest backup of a series was begun, in Unix seconds."""

    begun_s: float


LATEST_BACKUPS: Final = RecordKind("latest-backup", LatestBackup)


@dataclass(slots=True)
class BackupLease:
    """The right to make a backup of a series, while no other node does."""

    latest_s: float = 0.0
    """When the latest one of any node was begun; 0 if none is known."""
    begun_s: float | None = None
    """To be set when a backup was made: when it was begun."""

    def due_in_s(self, interval_s: int, *, now_s: float) -> float:
        """How long until the next backup; 0 if it is overdue."""
        return max(self.latest_s + interval_s - now_s, 0.0)


@contextmanager
def backup_lease(settings: Settings, place: Path) -> Iterator[BackupLease]:
    """Wait until no other node makes a backup of the series in this folder. Raises RootUnusable,
    StorageError, Overloaded."""
    if settings.database is None:
        yield BackupLease()
        return
    holding = _LeaseThread(settings, place)
    holding.start()
    try:
        yield holding.turn.result()
    finally:
        holding.over.set()
        holding.join()
    if holding.trouble is not None:
        raise holding.trouble


class _LeaseThread(threading.Thread):
    """Holds the lease until it is over."""

    def __init__(self, settings: Settings, place: Path) -> None:
        super().__init__(name="podstead-backup-turn", daemon=True)
        self.turn: Future[BackupLease] = Future()
        self.over = threading.Event()
        self.trouble: BaseException | None = None
        self._settings = settings
        self._series = hashlib.sha256(str(place.absolute()).encode()).hexdigest()

    def run(self) -> None:
        try:
            asyncio.run(self._hold())
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            if self.turn.done():
                self.trouble = error
            else:
                self.turn.set_exception(error)

    async def _hold(self) -> None:
        async with opened_records(self._settings) as records:
            lease = Lease(f"backup {self._series}", records)
            while not await lease.hold():
                if await self._is_over():
                    return
            latest = await records.read(LATEST_BACKUPS, self._series)
            turn = BackupLease(0.0 if latest is None else latest.value.begun_s)
            self.turn.set_result(turn)
            while not await self._is_over():
                # At worst, another node makes a backup, too.
                with suppress(ServerTrouble):
                    await lease.hold()
            if turn.begun_s is not None:
                made = LatestBackup(turn.begun_s)
                await records.commit([LATEST_BACKUPS.put(self._series, made)])
            await lease.release()

    async def _is_over(self) -> bool:
        return await asyncio.to_thread(self.over.wait, _RENEWAL_S)
