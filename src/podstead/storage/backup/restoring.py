"""Restoring a backup into an empty data root.

Everything is first restored into ``.restoring`` in the root, where no server starts, and moved to
its place once all of it is verified; the records come last.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from podstead.core.errors import Conflict, RootUnusable
from podstead.storage.backup import reading
from podstead.storage.files import make_private_directory, sync_content, sync_directory, write_all
from podstead.storage.layout import RootLayout
from podstead.storage.root import lock_root

_DIRECTORY: Final = 0o700
_IGNORED: Final = frozenset({"lost+found"})

OnDatabase = Callable[[Path], None]
"""Called with the records as soon as they are there; raises if they cannot be used."""
OnRestored = Callable[[reading.FileRecord], None]


def restore_into(
    root: Path, backup: reading.BackupReader, *, on_database: OnDatabase, on_restored: OnRestored
) -> reading.Manifest:
    """Restore a backup into ``root``, which must be empty or missing.

    If it fails, the root is as empty as before. Raises Conflict if it is not empty, RootUnusable,
    BackupUnusable, BackupDamaged, OSError, and what ``on_database`` raises.
    """
    layout = RootLayout(root)
    _check_empty(layout)
    try:
        root.mkdir(mode=_DIRECTORY, parents=True, exist_ok=True)
    except OSError as error:
        raise RootUnusable(f"{root} cannot be created: {error.strerror}.") from error
    with lock_root(root):
        if layout.restoring.exists():  # by a process that was killed; we have the lock
            shutil.rmtree(layout.restoring)
        layout.restoring.mkdir(mode=_DIRECTORY)
        writer = _Writer(layout.restoring, on_database, on_restored)
        try:
            manifest = backup.read_all(writer.write)
            writer.finish()
        except BaseException:
            shutil.rmtree(layout.restoring, ignore_errors=True)
            layout.lock.unlink(missing_ok=True)
            raise
        _move(layout)
    return manifest


def _check_empty(layout: RootLayout) -> None:
    """Raises Conflict if it is not, RootUnusable. What an interrupted restore left behind is in the
    way only if it had begun to move files to their places."""
    if not layout.root.exists():
        return
    try:
        found = {path.name for path in layout.root.iterdir()}
    except OSError as error:
        raise RootUnusable(f"{layout.root} cannot be read: {error.strerror}.") from error
    ours = {layout.restoring.name, layout.lock.name} if layout.restoring.exists() else set()
    if found - _IGNORED - ours:
        raise Conflict(
            f"{layout.root} is not empty. Restore into a new folder, so that nothing is "
            "overwritten."
        )


class _Writer:
    def __init__(self, folder: Path, on_database: OnDatabase, on_restored: OnRestored) -> None:
        self._folder = folder
        self._on_database = on_database
        self._on_restored = on_restored
        self._directories = {folder}
        self._has_database = False

    def write(self, record: reading.FileRecord, pieces: Iterator[bytes]) -> None:
        path = self._folder / record.name
        self._make(path if record.is_directory else path.parent)
        if record.is_directory:
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            for piece in pieces:
                write_all(descriptor, [piece])
            os.fchmod(descriptor, record.permissions)
            sync_content(descriptor)
        finally:
            os.close(descriptor)
        if record.name == reading.DATABASE:
            self._on_database(path)
            self._has_database = True
        self._on_restored(record)

    def finish(self) -> None:
        if not self._has_database:
            raise reading.BackupDamaged(f"The backup has no {reading.DATABASE}")
        for directory in self._directories:
            sync_directory(directory)

    def _make(self, directory: Path) -> None:
        make_private_directory(directory)
        while directory not in self._directories:
            self._directories.add(directory)
            directory = directory.parent


def _move(layout: RootLayout) -> None:
    names = sorted(path.name for path in layout.restoring.iterdir())
    for name in sorted(names, key=lambda name: name == reading.DATABASE):
        (layout.restoring / name).rename(layout.root / name)
    sync_directory(layout.root)
    layout.restoring.rmdir()
    sync_directory(layout.root)
