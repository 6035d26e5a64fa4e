"""Verifying a backup, and restoring it into an empty data root."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from podstead.app.operator.backup import OnStep
from podstead.app.operator.data_root import inspect_copy
from podstead.config import Settings
from podstead.core.errors import RootUnusable
from podstead.storage.backup.archives import ArchiveBackup
from podstead.storage.backup.reading import (
    BackupDamaged,
    BackupReader,
    BackupUnusable,
    FileRecord,
    FolderBackup,
    Manifest,
)
from podstead.storage.backup.restoring import restore_into
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteFacts
from podstead.storage.tables import BODIES_FACT


def open_backup(backup: Path) -> BackupReader:
    """Raises BackupUnusable."""
    if backup.is_dir():
        return FolderBackup(backup)
    if backup.is_file():
        return ArchiveBackup(backup)
    raise BackupUnusable(f"There is no backup at {backup}.")


def verify_backup(backup: Path, *, on_step: OnStep) -> Manifest:
    """Read all of a backup, and check it. Raises BackupUnusable, BackupDamaged, OSError."""
    done = 0

    def take(_: FileRecord, pieces: Iterator[bytes]) -> None:
        nonlocal done
        for _piece in pieces:
            pass
        done += 1
        on_step("Verifying", done, 0)

    return open_backup(backup).read_all(take)


def restore_backup(settings: Settings, backup: Path, *, on_step: OnStep) -> Manifest:
    """Restore a backup into the data root, which must be empty or missing.

    Raises Conflict, BackupUnusable, BackupDamaged, RootUnusable (including SchemaTooNew), OSError.
    """
    if settings.database is not None:
        raise RootUnusable(
            "A backup is restored into a data root with its records. Restore without --database."
        )
    done_bytes = 0

    def on_restored(record: FileRecord) -> None:
        nonlocal done_bytes
        done_bytes += record.size
        on_step("Restoring", done_bytes, 0)

    manifest = restore_into(
        settings.root, open_backup(backup), on_database=_check_records, on_restored=on_restored
    )
    layout = prepare_root(settings.root)
    # The backup has all bodies, wherever they were, and they are in the data root now.
    SqliteFacts(layout.database).write_fact(BODIES_FACT, "")
    return manifest


def _check_records(copy: Path) -> None:
    """Raises SchemaTooNew, BackupDamaged, StorageError."""
    with closing(inspect_copy(copy)) as records:
        records.check_not_newer()
        faults = records.integrity_faults()
    if faults:
        raise BackupDamaged(f"The records in the backup are damaged: {faults[0]}")
