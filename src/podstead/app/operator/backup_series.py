"""A series of backups in one folder: dated, incremental, and pruned by rules."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from podstead.app.operator.backup import OnStep, back_up_to_folder
from podstead.app.operator.backup_lease import backup_lease
from podstead.config import Settings
from podstead.core.errors import PodsteadError
from podstead.storage.backup.manifest import BackupDamaged, BackupUnusable, Manifest
from podstead.storage.backup.reading import FolderBackup
from podstead.storage.backup.retention import KeepRule, kept
from podstead.storage.backup.sinks import remove_abandoned, remove_backup

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


async def keep_backing_up(
    series: BackupSeries,
    interval_s: int,
    *,
    on_step: OnStep,
    on_result: Callable[[SeriesResult], None],
    on_failure: Callable[[Exception], None],
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Add a backup whenever one is due, unless another node has made it. Runs until something from
    outside ends it."""
    while True:
        wait_s = series.due_in_s(interval_s, now_s=time.time())
        try:
            if wait_s <= 0:
                with backup_lease(series.settings, series.place) as turn:
                    now_s = time.time()
                    # Also in the folder, which another node may have filled meanwhile.
                    wait_s = max(each.due_in_s(interval_s, now_s=now_s) for each in (turn, series))
                    if wait_s <= 0:
                        on_result(await series.add(on_step))
                        turn.begun_s = now_s
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
