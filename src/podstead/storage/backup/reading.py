"""Reading a backup, and verifying that it is what was written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from podstead.storage.backup.manifest import (
    FILES,
    MANIFEST,
    BackupDamaged,
    BackupUnusable,
    FileRecord,
    Manifest,
    read_manifest,
    read_record,
)
from podstead.storage.backup.sinks import pieces_of

OnFile = Callable[[FileRecord, Iterator[bytes]], None]
"""Called with each file and directory and the pieces of its content, all of which it must take."""


class BackupReader(Protocol):
    """A complete backup."""

    def read_all(self, on_file: OnFile) -> Manifest:
        """Read everything in the order in which it was stored, and verify it.

        Raises BackupUnusable, BackupDamaged, OSError, and what ``on_file`` raises.
        """


class FolderBackup:
    """A backup in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def manifest(self) -> Manifest:
        """Raises BackupUnusable, BackupDamaged."""
        try:
            return read_manifest((self._folder / MANIFEST).read_bytes())
        except OSError as error:
            newest = max(self._folder.glob(f"[!.]*/{MANIFEST}"), default=None)
            hint = f" It contains backups, such as {newest.parent}." if newest else ""
            raise BackupUnusable(
                f"{self._folder} is not a complete backup: {MANIFEST} cannot be read "
                f"({error.strerror}).{hint}"
            ) from error

    def records(self, files_sha256: str) -> Iterator[FileRecord]:
        """The files of the list with that hash. Raises BackupDamaged."""
        path = self._folder / FILES
        try:
            with path.open("rb") as lines:
                if hashlib.file_digest(lines, "sha256").hexdigest() != files_sha256:
                    raise BackupDamaged(f"{path} is not the list that was written")
                lines.seek(0)
                for line in lines:
                    record = read_record(line)
                    check_file_name(record.name)
                    yield record
        except OSError as error:
            raise BackupDamaged(f"{path} cannot be read") from error

    def read_all(self, on_file: OnFile) -> Manifest:
        manifest = self.manifest()
        for record in self.records(manifest.files_sha256):
            if record.is_directory:
                on_file(record, iter(()))
            else:
                with self.open(record) as file:
                    on_file(record, checked_pieces(record, file))
        return manifest

    def open(self, record: FileRecord) -> BinaryIO:
        """Open a file. Raises BackupDamaged."""
        path = self._folder / record.name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise BackupDamaged(f"{path} cannot be read ({error.strerror})") from error
        return os.fdopen(descriptor, "rb", buffering=0)


def checked_pieces(record: FileRecord, file: BinaryIO) -> Iterator[bytes]:
    """The content of a file. Raises BackupDamaged at the end if it is not what was stored."""
    hashed = hashlib.sha256()
    try:
        for piece in pieces_of(file, record.size):
            hashed.update(piece)
            yield piece
    except EOFError as error:
        raise BackupDamaged(f"{record.name} is shorter than it was") from error
    if file.read(1) or hashed.hexdigest() != record.sha256:
        raise BackupDamaged(f"{record.name} is not what was stored: its hash does not match")


def check_file_name(name: str) -> None:
    """Raise BackupDamaged unless the name stays inside the folder that it is restored to."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise BackupDamaged(f"The backup lists a file of an impossible name: {name!r}")


def take_all(_: FileRecord, pieces: Iterator[bytes]) -> None:
    """An :data:`OnFile` that only has everything verified."""
    for _piece in pieces:
        pass
