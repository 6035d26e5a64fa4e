"""What the data root contains, and what a worker answers when the main process asks it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from podstead.app.monitoring import diagnosis, families
from podstead.app.monitoring.checks import WorkerChecks
from podstead.app.monitoring.readings import Readings, WorkerReadings, single
from podstead.config import Settings
from podstead.idp import mail_queue, records
from podstead.notifications.channels import CHANNELS
from podstead.storage.backup import last
from podstead.storage.disk_space import DiskSpace, DiskUsage, read_disk_usage
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.records import PodTotals

_MAX_COUNTED: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """What the data root contains."""

    disk: DiskUsage
    floor_bytes: int
    database_bytes: int
    pods: PodTotals
    accounts: int
    channels: int
    waiting_mail: int
    last_backup: last.LastBackup | None
    failed_backup: last.FailedBackup | None

    def readings(self) -> Readings:
        """The facts as metrics."""
        backup: Readings = {}
        if self.last_backup is not None:
            backup = {
                **single(families.LAST_BACKUP, self.last_backup.finished_s),
                **single(families.LAST_BACKUP_DURATION, self.last_backup.duration_s),
            }
        if self.failed_backup is not None:
            backup |= single(families.FAILED_BACKUP, self.failed_backup.failed_s)
        return {
            **backup,
            **single(families.PODS, self.pods.pods),
            **single(families.ACCOUNTS, self.accounts),
            **single(families.CHANNELS, self.channels),
            **single(families.WAITING_MAIL, self.waiting_mail),
            **single(families.USED_BYTES, self.pods.used_bytes),
            **single(families.QUOTA_BYTES, self.pods.quota_bytes),
            **single(families.NEARLY_FULL, self.pods.nearly_full),
            **single(families.DATABASE_BYTES, self.database_bytes),
            **single(families.DISK_TOTAL, self.disk.total_bytes),
            **single(families.DISK_FREE, self.disk.free_bytes),
            **single(families.DISK_FLOOR, self.floor_bytes),
        }


async def read_stored_facts(settings: Settings, store: Store) -> StoredFacts:
    """Read them. Raises StorageError and OSError."""
    layout = RootLayout(settings.root)
    space = DiskSpace(layout.root, min_free_bytes=settings.min_free_bytes)
    disk = await asyncio.to_thread(read_disk_usage, layout.root)
    return StoredFacts(
        disk=disk,
        floor_bytes=space.floor_bytes(disk),
        database_bytes=await store.database_bytes(),
        pods=await store.pod_totals(default_quota_bytes=settings.quota_bytes),
        accounts=await records.ACCOUNTS.count(store, at_most=_MAX_COUNTED),
        channels=await CHANNELS.count(store, at_most=_MAX_COUNTED),
        waiting_mail=await mail_queue.waiting_messages(store),
        last_backup=await asyncio.to_thread(last.read_last_backup, layout.last_backup),
        failed_backup=await asyncio.to_thread(last.read_failed_backup, layout.failed_backup),
    )


class WorkerQuery(Enum):
    """What the main process may ask."""

    COUNTERS = "counters"
    """What this worker has counted."""
    STORED = "stored"
    """What the data root contains, and what features say; asked of one worker."""
    CHECKS = "checks"
    """Whether this worker is ready."""


def worker_answers(
    settings: Callable[[], Settings],
    *,
    readings: WorkerReadings,
    checks: WorkerChecks,
    store: Store,
    health: diagnosis.FeatureHealth,
) -> Callable[[str], Awaitable[bytes]]:
    """The function that answers with JSON. It raises ValueError for an unknown query,
    StorageError and OSError."""

    async def answer(query: str) -> bytes:
        asked = WorkerQuery(query)
        if asked is WorkerQuery.COUNTERS:
            return msgspec.json.encode(readings.read())
        if asked is WorkerQuery.STORED:
            facts = await read_stored_facts(settings(), store)
            return msgspec.json.encode({**facts.readings(), **await health.readings()})
        return msgspec.json.encode(await checks.run())

    return answer
