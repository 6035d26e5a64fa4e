"""Checks a data root, also while a server runs on it, and repairs what was found.

Everything is compared with the records as of one moment, with removals held back, so what a running
server does meanwhile is no finding. What is new since is looked up again, or has a grace period.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from podstead.app.adapters.body_stores import layout_of
from podstead.app.adapters.root import BASE_URL_FACT
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.operator.backup import OnStep
from podstead.app.operator.checking.bodies import (
    check_containers,
    check_files,
    check_large_bodies,
    check_small_bodies,
    check_uploads,
)
from podstead.app.operator.checking.context import CheckContext
from podstead.app.operator.checking.findings import Code, Finding
from podstead.app.operator.checking.objects import check_objects
from podstead.app.operator.checking.private import (
    check_free_space,
    check_private_files,
    check_stored_keys,
)
from podstead.app.operator.checking.repairs import Repairs, SetAside
from podstead.app.operator.checking.rules import check_rules
from podstead.app.operator.data_root import opened_store, unopened_store
from podstead.config import Settings
from podstead.features import folders
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.disk_space import DiskSpace, read_disk_usage
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodTotals

_CHECKS_OF_FILES: Final = (check_large_bodies, check_uploads, check_files)
_CHECKS: Final = (
    check_small_bodies,
    check_containers,
    check_rules,
    check_private_files,
    check_stored_keys,
    check_free_space,
)


async def check_root(
    settings: Settings,
    *,
    is_quick: bool,
    repair: bool,
    on_step: OnStep,
    on_finding: Callable[[Finding], None],
) -> Sequence[Finding]:
    """All findings, each of which is passed to ``on_finding`` when it is found and, if ``repair``,
    has been repaired or cannot be."""
    layout = layout_of(settings)
    findings = []
    async with opened_store(settings) if repair else nullcontext(unopened_store(settings)) as store:
        with store.removals_locked(), closing(store.inspect()) as records:
            now = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H%M%SZ")
            base_url = records.read_fact(BASE_URL_FACT) or settings.base_url
            record_store = RecordStore(store, SystemClock(), SystemRandomness())
            check = CheckContext(
                settings=settings,
                layout=layout,
                store=store,
                records=records,
                base_url=base_url,
                repairs=Repairs(record_store, base_url, SetAside(layout.set_aside / now)),
                on_step=on_step,
                is_quick=is_quick,
            )
            async for finding in _findings(check):
                if repair and finding.repair is not None:
                    done = await finding.repair()
                    finding.is_repaired = done is True
                    finding.loss = done if isinstance(done, str) else ""
                findings.append(finding)
                on_finding(finding)
    return findings


async def _findings(check: CheckContext) -> AsyncIterator[Finding]:
    check.on_step("Checking the database", 0, 0)
    is_elsewhere = check.settings.database is not None
    place = "PostgreSQL" if is_elsewhere else str(check.layout.database)
    damage = check.records.integrity_faults(is_quick=check.is_quick)
    for fault in damage:
        yield Finding(Code.DATABASE_DAMAGED, place, fault)
    if damage:
        return  # nothing that it says can be relied on
    async for finding in _findings_in_bodies(check):
        yield finding
    for each in _CHECKS:
        for finding in each(check):
            yield finding
    for folder in folders():
        async for finding in folder.check(check):
            yield finding


async def _findings_in_bodies(check: CheckContext) -> AsyncIterator[Finding]:
    if isinstance(check.settings.bodies, S3Location):
        async for finding in check_objects(check, check.settings.bodies):
            yield finding
    else:
        for each in _CHECKS_OF_FILES:
            for finding in each(check):
                yield finding


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
