"""A series of backups in one folder: dated, incremental, and pruned by rules.

Any node that shares a PostgreSQL database may run ``podstead backup --every``. The nodes that do so
with the same folder, which may be a disk of their own at the same path, make one backup for all of
them: one makes it while it holds a lease, and the others read from a record that it was made.

A backup keeps its event loop busy for long, so the lease is renewed by another one, in a thread.
"""

import asyncio
import contextlib
import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from podstead.app.operator.backup import back_up_to_folder
from podstead.app.operator.data_root import OnStep, opened_records
from podstead.config import Settings
from podstead.core.errors import PodsteadError, ServerTrouble
from podstead.storage.backup.reading import BackupDamaged, BackupUnusable, FolderBackup, Manifest
from podstead.storage.backup.retention import KeepRule, kept
from podstead.storage.backup.sinks import remove_abandoned, remove_backup
from podstead.storage.record_store import Lease, RecordKind

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
    """Wait until no other node makes a backup of the series in this folder."""
    if settings.database is None:
        yield BackupLease()
        return
    thread = _LeaseThread(settings, place)
    thread.start()
    try:
        yield thread.acquired.result()
    finally:
        thread.over.set()
        thread.join()
    if thread.trouble is not None:
        raise thread.trouble


class _LeaseThread(threading.Thread):
    """Holds the lease until it is over."""

    def __init__(self, settings: Settings, place: Path) -> None:
        super().__init__(name="podstead-backup-lease", daemon=True)
        self.acquired: Future[BackupLease] = Future()
        self.over = threading.Event()
        self.trouble: BaseException | None = None
        self._settings = settings
        self._series = hashlib.sha256(str(place.absolute()).encode()).hexdigest()

    def run(self) -> None:
        try:
            asyncio.run(self._hold())
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            if self.acquired.done():
                self.trouble = error
            else:
                self.acquired.set_exception(error)

    async def _hold(self) -> None:
        async with opened_records(self._settings) as records:
            lease = Lease(f"backup {self._series}", records)
            while not await lease.hold():
                if await self._is_over():
                    return
            latest = await records.read(LATEST_BACKUPS, self._series)
            acquired = BackupLease(0.0 if latest is None else latest.value.begun_s)
            self.acquired.set_result(acquired)
            while not await self._is_over():
                # At worst, another node makes a backup, too.
                with suppress(ServerTrouble):
                    await lease.hold()
            if acquired.begun_s is not None:
                made = LatestBackup(acquired.begun_s)
                await records.commit([LATEST_BACKUPS.put(self._series, made)])
            await lease.release()

    async def _is_over(self) -> bool:
        return await asyncio.to_thread(self.over.wait, _RENEWAL_S)


RETRY_S: Final = 600
"""How long to wait after a failed backup, unless the next one is due earlier."""

_NAME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{6}Z")
_NAME_FORMAT: Final = "%Y-%m-%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """A new backup of a series, and which earlier ones were removed."""

    folder: Path
    manifest: Manifest
    removed: Sequence[Path]
    duration_s: float


@dataclass(frozen=True, slots=True)
class BackupSeries:
    """The dated backups in a folder. Other files and folders there are left alone."""

    settings: Settings
    place: Path
    rules: Sequence[KeepRule]
    """Without rules, all backups are kept."""

    def existing(self) -> Mapping[datetime, Path]:
        """The complete backups, by the moments of their names."""
        found: dict[datetime, Path] = {}
        if not self.place.is_dir():
            return found
        for folder in self.place.iterdir():
            if _NAME.fullmatch(folder.name) and _is_complete(folder):
                moment = datetime.strptime(folder.name, _NAME_FORMAT).replace(tzinfo=UTC)
                found[moment] = folder
        return found

    async def add(self, on_step: OnStep) -> SeriesResult:
        """Add a backup that shares unchanged files with the newest one, then remove those that the
        rules do not keep. Raises BackupUnusable, BackupDamaged, StorageError, OSError."""
        started_s = time.monotonic()
        earlier = self.existing()
        folder = self.place / datetime.now(tz=UTC).strftime(_NAME_FORMAT)
        previous = earlier[max(earlier)] if earlier else None
        with contextlib.suppress(FileExistsError, FileNotFoundError):  # the backup says which
            self.place.mkdir(mode=0o700)
        manifest = await back_up_to_folder(
            self.settings, folder, previous=previous, on_step=on_step
        )
        removed = self._prune(on_step) if self.rules else []
        return SeriesResult(folder, manifest, removed, time.monotonic() - started_s)

    def _prune(self, on_step: OnStep) -> list[Path]:
        existing = self.existing()
        keep = kept(existing, self.rules)
        removed = [folder for moment, folder in sorted(existing.items()) if moment not in keep]
        for number, folder in enumerate(removed, 1):
            on_step("Removing old backups", number, len(removed))
            remove_backup(folder)
        return removed

    def due_in_s(self, interval_s: int, *, now_s: float) -> float:
        """How long until the next backup; 0 if it is overdue."""
        existing = self.existing()
        if not existing:
            return 0.0
        return max(max(existing).timestamp() + interval_s - now_s, 0.0)


_STEP_S: Final = 5.0


def _sleep(duration_s: float) -> None:
    """Sleep in steps: a signal that arrives just before a system call is handled after its end."""
    until_s = time.monotonic() + duration_s
    while (rest_s := until_s - time.monotonic()) > 0:
        time.sleep(min(rest_s, _STEP_S))


async def keep_backing_up(
    series: BackupSeries,
    interval_s: int,
    *,
    on_step: OnStep,
    on_result: Callable[[SeriesResult], None],
    on_failure: Callable[[Exception], None],
    wait: Callable[[float], None] = _sleep,
) -> None:
    """Add a backup whenever one is due, unless another node has made it. Runs until something from
    outside ends it."""
    while True:
        wait_s = series.due_in_s(interval_s, now_s=time.time())
        try:
            if wait_s <= 0:
                with backup_lease(series.settings, series.place) as lease:
                    now_s = time.time()
                    # Also in the folder, which another node may have filled meanwhile.
                    wait_s = max(each.due_in_s(interval_s, now_s=now_s) for each in (lease, series))
                    if wait_s <= 0:
                        on_result(await series.add(on_step))
                        lease.begun_s = now_s
            if wait_s > 0:
                wait(wait_s)
        except (PodsteadError, OSError) as error:
            on_failure(error)
            remove_abandoned(series.place)
            wait(min(interval_s, RETRY_S))


def _is_complete(folder: Path) -> bool:
    try:
        FolderBackup(folder).manifest()
    except (BackupUnusable, BackupDamaged):
        return False
    return True
