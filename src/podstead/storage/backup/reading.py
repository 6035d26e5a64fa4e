"""What a backup consists of, and reading it: whether it is what was written.

``files.jsonl`` lists each file with its size, hash and mode, one JSON object a line, in the order
in which they were stored. ``manifest.json`` is written last and contains the hash of that list: a
backup with a manifest is complete, and each of its files can be verified.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, Protocol

import msgspec

from podstead.core.errors import PodsteadError

PIECE_BYTES: Final = 1024 * 1024
FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
FILES: Final = "files.jsonl"
DATABASE: Final = "podstead.db"
"""The copy of all records, in the format of the engine."""


class BackupUnusable(PodsteadError):
    """A backup cannot be written there, or what is to be read is not a complete backup."""


class BackupDamaged(PodsteadError):
    """A backup does not contain what was written."""


class FileRecord(msgspec.Struct, frozen=True):
    """One file; a directory, which may be empty, has a name that ends in a slash and no hash."""

    name: str
    size: int
    sha256: str
    mode: str

    @property
    def is_directory(self) -> bool:
        return self.name.endswith("/")

    @property
    def permissions(self) -> int:
        """The mode as a number, without the bits that no file of a data root has."""
        return int(self.mode, 8) & 0o777


class FileTotals(msgspec.Struct):
    """How many files there are, and their bytes."""

    files: int = 0
    bytes: int = 0

    def add(self, size_bytes: int) -> None:
        self.files += 1
        self.bytes += size_bytes


class BackupCounts(msgspec.Struct, frozen=True):
    """What is in a backup."""

    pods: int
    resources: int
    large_bodies: int
    body_bytes: int
    uploads: int
    repositories: int


class Manifest(msgspec.Struct, frozen=True):
    """A complete backup. ``faults`` are sentences about what was damaged or missing in the root."""

    format: int
    version: str
    schema: int
    base_url: str | None
    moment: str
    started: str
    finished: str
    counts: BackupCounts
    copied: FileTotals
    linked: FileTotals
    files_sha256: str
    previous: str | None = None
    faults: tuple[str, ...] = ()


_records = msgspec.json.Decoder(FileRecord)


def record_line(record: FileRecord) -> bytes:
    """The line of a file in the list."""
    return msgspec.json.encode(record) + b"\n"


def read_record(line: bytes) -> FileRecord:
    """Raises BackupDamaged."""
    try:
        return _records.decode(line)
    except msgspec.DecodeError as error:
        raise BackupDamaged(f"The list of files, {FILES}, is damaged") from error


def manifest_text(manifest: Manifest) -> bytes:
    """The manifest as JSON, with a line for each field."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def read_manifest(text: bytes) -> Manifest:
    """Raises BackupUnusable, BackupDamaged."""
    try:
        known = msgspec.json.decode(text)
        written_in = known.get("format") if isinstance(known, dict) else None
        if isinstance(written_in, int) and written_in > FORMAT:
            raise BackupUnusable(
                f"The backup has format {written_in}; this version of Podstead knows {FORMAT}. "
                "Restore it with a newer version."
            )
        if written_in is None:
            raise BackupUnusable(f"This is not a backup: {MANIFEST} does not state its format.")
        return msgspec.convert(known, Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise BackupDamaged(f"{MANIFEST} is damaged") from error


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


def pieces_of(source: BinaryIO, size_bytes: int) -> Iterator[bytes]:
    """Exactly the next ``size_bytes``. Raises OSError, and EOFError if there are fewer."""
    while size_bytes:
        piece = source.read(min(size_bytes, PIECE_BYTES))
        if not piece:
            raise EOFError
        size_bytes -= len(piece)
        yield piece
