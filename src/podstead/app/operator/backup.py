"""Making a backup of the data root, also while a server runs on it.

The order makes it consistent. Removals are held back first; then the moment of the backup is the
beginning of a transaction that reads all records; then every file that these records refer to is
copied. Bodies never change, so each is the one that the record means. What features keep in
folders is copied as of some time after the moment.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from podstead import __version__
from podstead.app.adapters.engine import key_storage, layout_of, stored_blobs
from podstead.app.adapters.keys import read_all_keys
from podstead.app.adapters.root import BASE_URL_FACT
from podstead.app.operator.data_root import OnStep, inspect_copy, unopened_store
from podstead.config import Settings
from podstead.core.date_times import write_time
from podstead.core.errors import PodsteadError, RootUnusable
from podstead.features import folders
from podstead.storage import inspection, protocol, root, tables
from podstead.storage.backup import reading
from podstead.storage.backup.archives import ArchiveBackup, archive_sink
from podstead.storage.backup.copying import OpenDrafts, RootCopy
from podstead.storage.backup.last import FailedBackup, LastBackup, write_last_backup
from podstead.storage.backup.restoring import restore_into
from podstead.storage.backup.sinks import FolderSink, Sink, partial_file, partial_folder
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.copying.bodies import StoredBlobs
from podstead.storage.layout import RootLayout
from podstead.storage.sqlite import SqliteFacts


async def back_up_to_folder(
    settings: Settings, target: Path, *, previous: Path | None, on_step: OnStep
) -> reading.Manifest:
    """Write a backup into the new folder ``target``, whose files are those of ``previous`` where
    they did not change.

    Raises BackupUnusable, BackupDamaged, StorageError, OSError.
    """
    started_s = time.monotonic()
    with _failure_recorded(settings, target):
        _check_outside(settings, target)
        hashes = {} if previous is None else _hashes_not_in_names(previous)
        with partial_folder(target) as folder:
            with FolderSink(folder, previous=previous, previous_hashes=hashes) as sink:
                manifest = await _back_up(settings, sink, previous=previous, on_step=on_step)
            _verify_folder(folder, manifest, on_step)
        _record_success(settings, target, manifest, started_s)
    return manifest


async def back_up_to_archive(
    settings: Settings, target: Path, *, on_step: OnStep
) -> reading.Manifest:
    """Write a backup into the new file ``target``.

    Raises BackupUnusable, BackupDamaged, StorageError, OSError.
    """
    started_s = time.monotonic()
    with _failure_recorded(settings, target):
        _check_outside(settings, target)
        with partial_file(target) as archive:
            with archive_sink(archive) as sink:
                manifest = await _back_up(settings, sink, previous=None, on_step=on_step)
            on_step("Verifying the backup", 0, 0)
            if ArchiveBackup(archive).read_all(reading.take_all) != manifest:
                raise reading.BackupDamaged(f"The manifest in {target} is not what was written")
        _record_success(settings, target, manifest, started_s)
    return manifest


def _check_outside(settings: Settings, target: Path) -> None:
    """Raise BackupUnusable for a backup in the data root, which would be a part of the next one,
    and lost together with it."""
    if target.resolve().is_relative_to(settings.root.resolve()):
        raise reading.BackupUnusable(f"{target} is in the data root. Choose a place outside of it.")


@contextmanager
def _failure_recorded(settings: Settings, target: Path) -> Iterator[None]:
    """Record when a backup failed, if that can be recorded: the disk may be what is wrong."""
    try:
        yield
    except (PodsteadError, OSError):
        now_ms = _now_ms()
        failed = FailedBackup(str(target.absolute()), write_time(now_ms), now_ms / 1000)
        with suppress(OSError):
            write_last_backup(RootLayout(settings.root).failed_backup, failed)
        raise


def _record_success(
    settings: Settings, target: Path, manifest: reading.Manifest, started_s: float
) -> None:
    now_ms = _now_ms()
    write_last_backup(
        RootLayout(settings.root).last_backup,
        LastBackup(
            place=str(target.absolute()),
            moment=manifest.moment,
            finished=write_time(now_ms),
            finished_s=now_ms / 1000,
            duration_s=round(time.monotonic() - started_s, 3),
            copied_files=manifest.copied.files,
            copied_bytes=manifest.copied.bytes,
            linked_files=manifest.linked.files,
            linked_bytes=manifest.linked.bytes,
            faults=len(manifest.faults),
        ),
    )


async def _back_up(
    settings: Settings, sink: Sink, *, previous: Path | None, on_step: OnStep
) -> reading.Manifest:
    layout = layout_of(settings)
    store = unopened_store(settings)
    with store.removals_locked():
        keys = key_storage(settings)
        stored_keys = read_all_keys(keys) if keys.is_remote else None
        is_on_s3 = isinstance(settings.bodies, S3Location)
        objects = stored_blobs(settings) if is_on_s3 else None
        return await _Backup(layout, store, sink, on_step, stored_keys, objects).make(previous)


@dataclass(frozen=True, slots=True)
class RunningBackup:
    """A backup, for what features store in folders of the data root. ``faults`` takes sentences
    about what is damaged or missing."""

    layout: RootLayout
    records: inspection.Inspection
    sink: Sink
    faults: list[str]
    on_step: OnStep


@dataclass(slots=True)
class _Backup:
    """One backup in the making."""

    layout: RootLayout
    store: protocol.Store
    sink: Sink
    on_step: OnStep
    keys: Mapping[str, bytes] | None
    objects: StoredBlobs | None
    faults: list[str] = field(default_factory=list)

    async def make(self, previous: Path | None) -> reading.Manifest:
        started_ms = _now_ms()
        with closing(OpenDrafts()) as drafts:
            records_file = self.sink.work / f".{reading.DATABASE}"
            with closing(self.store.inspect()) as records:
                moment_ms = records.moment_ms
                if self.objects is None:
                    drafts.open(self.layout, records)
                step = "Copying the records"
                records.copy_to(str(records_file), lambda *done: self.on_step(step, *done))
            with closing(inspect_copy(records_file)) as records:
                self._verify_records(records)
                self.sink.add_database(records_file)
                rest = RootCopy(self.layout, self.sink, self.faults, self.keys)
                drafts.copy(self.sink, self.faults)
                step = "Copying large bodies"
                on_copied = partial(self.on_step, step)
                if self.objects is None:
                    rest.copy_large_bodies(records, on_copied)
                else:
                    await rest.copy_objects(records, self.objects, on_copied)
                backup = RunningBackup(self.layout, records, self.sink, self.faults, self.on_step)
                repositories = sum([await each.back_up(backup) for each in folders()])
                self.on_step("Copying keys", 0, 0)
                rest.copy_other_files([each.name for each in folders()])
                counts = records.counts()
                base_url = records.read_fact(BASE_URL_FACT)
                schema = records.schema
            manifest = reading.Manifest(
                format=reading.FORMAT,
                version=__version__,
                schema=schema,
                base_url=base_url,
                moment=write_time(moment_ms),
                started=write_time(started_ms),
                finished=write_time(_now_ms()),
                counts=reading.BackupCounts(
                    pods=counts.pods,
                    resources=counts.resources,
                    large_bodies=counts.large_bodies,
                    body_bytes=counts.body_bytes,
                    uploads=len(drafts),
                    repositories=repositories,
                ),
                copied=self.sink.copied,
                linked=self.sink.linked,
                files_sha256=self.sink.finish_list(),
                previous=None if previous is None else previous.name,
                faults=tuple(self.faults),
            )
        self.on_step("Writing to disk", 0, 0)
        self.sink.finish(manifest)
        return manifest

    def _verify_records(self, records: inspection.Inspection) -> None:
        self.on_step("Verifying the records", 0, 0)
        faults = records.integrity_faults()
        self.faults.extend(f"The database is damaged: {fault}" for fault in faults)
        if not faults:
            self.faults.extend(
                f"The body of {body.path} is missing or damaged in the database"
                for body in records.damaged_small_bodies()
            )


def _hashes_not_in_names(previous: Path) -> dict[str, str]:
    """The hashes of packs, and of bodies of earlier versions. Raises BackupUnusable,
    BackupDamaged."""
    backup = reading.FolderBackup(previous)
    manifest = backup.manifest()
    return {
        record.name: record.sha256
        for record in backup.records(manifest.files_sha256)
        if record.sha256 and record.sha256 not in record.name
    }


def _verify_folder(folder: Path, manifest: reading.Manifest, on_step: OnStep) -> None:
    """Read back what was written; of what it has in common with an earlier backup, only the size.

    Raises BackupDamaged, OSError.
    """
    backup = reading.FolderBackup(folder)
    if backup.manifest() != manifest:
        raise reading.BackupDamaged(f"The manifest in {folder} is not what was written")
    done_bytes = 0
    for record in backup.records(manifest.files_sha256):
        if record.is_directory:
            continue
        with backup.open(record) as file:
            status = os.fstat(file.fileno())
            if status.st_nlink == 1:
                reading.take_all(record, reading.checked_pieces(record, file))
                done_bytes += record.size
                on_step("Verifying the backup", done_bytes, manifest.copied.bytes)
            elif status.st_size != record.size:
                raise reading.BackupDamaged(f"{record.name} is not as long as it was")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def open_backup(backup: Path) -> reading.BackupReader:
    """Raises BackupUnusable."""
    if backup.is_dir():
        return reading.FolderBackup(backup)
    if backup.is_file():
        return ArchiveBackup(backup)
    raise reading.BackupUnusable(f"There is no backup at {backup}.")


def verify_backup(backup: Path, *, on_step: OnStep) -> reading.Manifest:
    """Read all of a backup, and check it. Raises BackupUnusable, BackupDamaged, OSError."""
    done = 0

    def take(_: reading.FileRecord, pieces: Iterator[bytes]) -> None:
        nonlocal done
        for _piece in pieces:
            pass
        done += 1
        on_step("Verifying", done, 0)

    return open_backup(backup).read_all(take)


def restore_backup(settings: Settings, backup: Path, *, on_step: OnStep) -> reading.Manifest:
    """Restore a backup into the data root, which must be empty or missing.

    Raises Conflict, BackupUnusable, BackupDamaged, RootUnusable (including SchemaTooNew), OSError.
    """
    if settings.database is not None:
        raise RootUnusable(
            "A backup is restored into a data root with its records. Restore without --database."
        )
    done_bytes = 0

    def on_restored(record: reading.FileRecord) -> None:
        nonlocal done_bytes
        done_bytes += record.size
        on_step("Restoring", done_bytes, 0)

    manifest = restore_into(
        settings.root, open_backup(backup), on_database=_check_records, on_restored=on_restored
    )
    layout = root.prepare_root(settings.root)
    # The backup has all bodies, wherever they were, and they are in the data root now.
    SqliteFacts(layout.database).write_fact(tables.BODIES_FACT, "")
    return manifest


def _check_records(copy: Path) -> None:
    """Raises SchemaTooNew, BackupDamaged, StorageError."""
    with closing(inspect_copy(copy)) as records:
        records.check_not_newer()
        faults = records.integrity_faults()
    if faults:
        raise reading.BackupDamaged(f"The records in the backup are damaged: {faults[0]}")
