"""How full are the disk and the pods?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.app.operator.data_root import opened_store
from podstead.config import Settings
from podstead.storage.disk_space import DiskSpace, read_disk_usage
from podstead.storage.records import PodTotals


@dataclass(frozen=True, slots=True)
class SpaceFigures:
    """What is used and free. Below ``floor_bytes`` of free space, nothing new is stored."""

    pods: PodTotals
    free_bytes: int
    floor_bytes: int


async def measure_space(settings: Settings) -> SpaceFigures:
    """Add up what the pods use, and look at the disk of the data root. Raises RootUnusable,
    StorageError, OSError."""
    disk = read_disk_usage(settings.root)
    space = DiskSpace(settings.root, min_free_bytes=settings.min_free_bytes)
    async with opened_store(settings) as store:
        pods = await store.pod_totals(default_quota_bytes=settings.quota_bytes)
    return SpaceFigures(pods, disk.free_bytes, space.floor_bytes(disk))
