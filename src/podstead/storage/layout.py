"""The layout of the data root."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RootLayout:
    """The paths below one data root."""

    root: Path
    bodies: Path | None = None
    """Where large bodies are, if not below the root."""

    @property
    def database(self) -> Path:
        return self.root / "podstead.db"

    @property
    def ephemeral_database(self) -> Path:
        """The database of records that a machine failure may destroy: rate limits, used proofs."""
        return self.root / "ephemeral.db"

    @property
    def records_elsewhere(self) -> Path:
        """An empty file that says that the records are not in ``database``."""
        return self.root / "records-elsewhere"

    @property
    def blobs(self) -> Path:
        """Large bodies."""
        return self.root / "blobs" if self.bodies is None else self.bodies

    @property
    def received(self) -> Path:
        """What is being received of large bodies that are not kept in files."""
        return self.root / "blobs" / "drafts"

    @property
    def thumbnails(self) -> Path:
        """Small pictures that can be made again; created with the first one."""
        return self.root / "thumbnails"

    @property
    def keys(self) -> Path:
        """Signing keys, readable by the server's account only."""
        return self.root / "keys"

    @property
    def change_pipes(self) -> Path:
        """The pipes by which processes notify each other of changes; empty while none runs."""
        return self.root / "change-pipes"

    @property
    def fair_lock(self) -> Path:
        """The file by which processes take turns at writing to the database."""
        return self.root / "write-turns"

    @property
    def removal_lock(self) -> Path:
        """The file whose lock keeps bodies and repositories from being removed."""
        return self.root / "removal-hold"

    @property
    def last_backup(self) -> Path:
        """What the last successful backup was, for monitoring; see ``backup/last.py``."""
        return self.root / "last-backup.json"

    @property
    def failed_backup(self) -> Path:
        """When the last backup that failed did so, for monitoring."""
        return self.root / "failed-backup.json"

    @property
    def set_aside(self) -> Path:
        """What ``podstead check --repair`` took out of use; created with the first of it."""
        return self.root / "set-aside"

    @property
    def restoring(self) -> Path:
        """Exists while a backup is being restored here, and after that has failed."""
        return self.root / ".restoring"

    @property
    def lock(self) -> Path:
        """The file that a running server holds a lock on."""
        return self.root / "podstead.lock"
