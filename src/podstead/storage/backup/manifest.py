"""What a backup says about itself.

``files.jsonl`` lists each file with its size, hash and mode, one JSON object a line, in the order
in which they were stored. ``manifest.json`` is written last and contains the hash of that list: a
backup with a manifest is complete, and each of its files can be verified.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from podstead.core.errors import PodsteadError

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

    @property
    def moment_s(self) -> float:
        """The moment in Unix seconds."""
        return datetime.fromisoformat(self.moment).timestamp()


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


def time_as_text(unix_ms: int) -> str:
    """A time as ``2026-11-21T05:30:00.123Z``."""
    seconds, rest = divmod(unix_ms, 1000)
    text = datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:03}Z"
