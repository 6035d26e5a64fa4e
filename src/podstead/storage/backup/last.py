"""Records the last successful backup of a data root and the last failure, for monitoring.

``last-backup.json`` in the data root is replaced after each backup, and ``failed-backup.json``
after each that failed. Neither is a part of backups.
"""

from pathlib import Path
from typing import TypeVar

import msgspec

from podstead.storage.files import replace_private

Kind = TypeVar("Kind")


class LastBackup(msgspec.Struct, frozen=True):
    """The last successful backup. Times are ISO 8601; ``finished_s`` is in Unix seconds, too."""

    place: str
    moment: str
    finished: str
    finished_s: float
    duration_s: float
    copied_files: int
    copied_bytes: int
    linked_files: int
    linked_bytes: int
    faults: int


class FailedBackup(msgspec.Struct, frozen=True):
    """The last backup that failed; ``failed_s`` is in Unix seconds."""

    place: str
    failed: str
    failed_s: float


def write_last_backup(path: Path, last: LastBackup | FailedBackup) -> None:
    """Replace the record. Raises OSError."""
    replace_private(path, msgspec.json.encode(last) + b"\n")


def read_last_backup(path: Path) -> LastBackup | None:
    """The last backup; ``None`` if there was none, or the record is damaged. Raises OSError."""
    return _read(path, LastBackup)


def read_failed_backup(path: Path) -> FailedBackup | None:
    """The last backup that failed; ``None`` if none did, or the record is damaged. Raises
    OSError."""
    return _read(path, FailedBackup)


def _read(path: Path, kind: type[Kind]) -> Kind | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError, msgspec.ValidationError):
        return None
