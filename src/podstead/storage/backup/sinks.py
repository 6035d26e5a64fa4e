"""Where a backup is written: a sink takes files one after another.

A backup gets its name only when it is complete, verified and on disk. Before that it is beside
that place, under a name that begins with a dot and contains ``.partial-``.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Protocol

from podstead.storage.backup import reading
from podstead.storage.files import (
    make_private_directory,
    sync_content,
    sync_directory,
    try_lock,
    write_all,
)

PARTIAL: Final = ".partial-"
_DIRECTORY: Final = 0o700
_WITHOUT_LINKS: Final = frozenset(
    {errno.EPERM, errno.EMLINK, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOENT}
)


class Sink(Protocol):
    """Takes the files of a backup. Names are relative paths as in a data root."""

    copied: reading.FileTotals
    linked: reading.FileTotals

    @property
    def work(self) -> Path:
        """A directory for temporary files on the same disk."""

    def add(
        self,
        name: str,
        source: BinaryIO,
        *,
        size_bytes: int,
        mode: int,
        known_sha256: str | None = None,
        is_immutable: bool = False,
    ) -> reading.FileRecord:
        """Store ``size_bytes`` from ``source``, and return what was stored.

        A file that ``is_immutable`` has, wherever the name occurs, the same content; the hash of
        that content is ``known_sha256``, if known. Raises OSError, and EOFError if the source is
        shorter.
        """

    def add_directory(self, name: str) -> None:
        """Store a directory. Raises OSError."""

    def add_database(self, copy: Path) -> None:
        """Store the copy of the records, which is in :attr:`work`. Raises OSError."""

    def finish_list(self) -> str:
        """Store the list of files; its hash. Raises OSError."""

    def finish(self, manifest: reading.Manifest) -> None:
        """Store the manifest, and make everything durable. Raises OSError."""


class FolderSink(AbstractContextManager["FolderSink"]):
    """A backup as a folder, in which files that did not change are those of an earlier backup."""

    def __init__(
        self,
        folder: Path,
        *,
        previous: Path | None = None,
        previous_hashes: Mapping[str, str] | None = None,
    ) -> None:
        """``previous_hashes`` are the hashes of those files of ``previous`` whose names do not
        tell them."""
        self._folder = folder
        self._previous = previous
        self._hashes = previous_hashes or {}
        self._directories: set[Path] = {folder}
        self._list = (folder / reading.FILES).open("xb")
        self._list_hash = hashlib.sha256()
        self.copied = reading.FileTotals()
        self.linked = reading.FileTotals()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._list.close()

    @property
    def work(self) -> Path:
        return self._folder

    def add(
        self,
        name: str,
        source: BinaryIO,
        *,
        size_bytes: int,
        mode: int,
        known_sha256: str | None = None,
        is_immutable: bool = False,
    ) -> reading.FileRecord:
        path = self._place(name)
        sha256 = known_sha256 or self._hashes.get(name)
        if is_immutable and sha256 is not None and self._link(name, path, size_bytes):
            self.linked.add(size_bytes)
        else:
            sha256 = copy_hashed(source, path, size_bytes=size_bytes, mode=mode)
            self.copied.add(size_bytes)
        return self._record(reading.FileRecord(name, size_bytes, sha256, f"{mode:04o}"))

    def add_directory(self, name: str) -> None:
        self._place(f"{name}/.")
        self._record(reading.FileRecord(f"{name}/", 0, "", f"{_DIRECTORY:04o}"))

    def add_database(self, copy: Path) -> None:
        size_bytes = copy.stat().st_size
        with copy.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        copy.rename(self._folder / reading.DATABASE)
        self.copied.add(size_bytes)
        self._record(reading.FileRecord(reading.DATABASE, size_bytes, sha256, "0600"))

    def finish_list(self) -> str:
        with self._list:
            self._list.flush()
            sync_content(self._list.fileno())
        return self._list_hash.hexdigest()

    def finish(self, manifest: reading.Manifest) -> None:
        path = self._folder / reading.MANIFEST
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            write_all(descriptor, [reading.manifest_text(manifest)])
            sync_content(descriptor)
        finally:
            os.close(descriptor)
        for directory in self._directories:
            sync_directory(directory)

    def _record(self, record: reading.FileRecord) -> reading.FileRecord:
        line = reading.record_line(record)
        self._list.write(line)
        self._list_hash.update(line)
        return record

    def _place(self, name: str) -> Path:
        path = self._folder / name
        directory = path.parent
        if directory not in self._directories:
            make_private_directory(directory)
            while directory not in self._directories:
                self._directories.add(directory)
                directory = directory.parent
        return path

    def _link(self, name: str, path: Path, size_bytes: int) -> bool:
        if self._previous is None:
            return False
        earlier = self._previous / name
        try:
            if earlier.lstat().st_size != size_bytes:
                return False
            path.hardlink_to(earlier)
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
            return False
        return True


def copy_hashed(source: BinaryIO, target: Path, *, size_bytes: int, mode: int) -> str:
    """Copy exactly ``size_bytes`` into a new file, durably; their SHA-256.

    Raises OSError, and EOFError if the source is shorter.
    """
    hashed = hashlib.sha256()
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        for piece in reading.pieces_of(source, size_bytes):
            hashed.update(piece)
            write_all(descriptor, [piece])
        os.fchmod(descriptor, mode)
        sync_content(descriptor)
        # What is read back later should come from the disk.
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    return hashed.hexdigest()


@contextmanager
def partial_folder(target: Path) -> Iterator[Path]:
    """A new folder that gets the name ``target`` at the end, unless the context raises.

    Raises BackupUnusable, OSError.
    """
    if target.is_symlink() or (target.exists() and not _is_empty_directory(target)):
        raise reading.BackupUnusable(
            f"{target} exists. Give a new name, or --keep to add a folder for each backup to it."
        )
    with _partial(target) as partial:
        yield partial
        partial.rename(target)
        sync_directory(target.parent)


@contextmanager
def partial_file(target: Path) -> Iterator[Path]:
    """A name in a new folder, for a file that gets the name ``target`` at the end, unless the
    context raises. Raises BackupUnusable, OSError."""
    if target.exists() or target.is_symlink():
        raise reading.BackupUnusable(f"{target} exists. Give a new name.")
    with _partial(target) as partial:
        yield partial / target.name
        (partial / target.name).rename(target)
        sync_directory(target.parent)
        shutil.rmtree(partial)


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """A locked folder beside ``target``, which is removed if the context raises."""
    if not target.parent.is_dir():
        raise reading.BackupUnusable(
            f"The folder {target.parent} does not exist. If a disk is mounted there, mount it; if "
            "not, create the folder."
        )
    remove_abandoned(target.parent)
    partial = target.parent / f".{target.name}{PARTIAL}{secrets.token_hex(4)}"
    partial.mkdir(mode=_DIRECTORY)
    lock = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield partial
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    finally:
        os.close(lock)


def _is_empty_directory(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def remove_abandoned(place: Path) -> None:
    """Remove unfinished backups of processes that were killed; their locks ended with them."""
    for path in place.glob(f".*{PARTIAL}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if try_lock(descriptor):
                    shutil.rmtree(path)
            finally:
                os.close(descriptor)


def remove_backup(folder: Path) -> None:
    """Remove a backup, which is no complete one from the first moment on. Raises OSError."""
    gone = folder.with_name(f".{folder.name}{PARTIAL}{secrets.token_hex(4)}")
    folder.rename(gone)
    shutil.rmtree(gone)
