"""What lies where under the data root?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RootLayout:
    """The places below one data root."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "podstead.db"

    @property
    def ephemeral_database(self) -> Path:
        """The database of what may be lost when the machine fails: rate limits, proofs used."""
        return self.root / "ephemeral.db"

    @property
    def blobs(self) -> Path:
        """Large bodies."""
        return self.root / "blobs"

    @property
    def git(self) -> Path:
        """Repositories of git, one directory each."""
        return self.root / "git"

    @property
    def keys(self) -> Path:
        """Signing keys; only the server's account may look inside."""
        return self.root / "keys"

    @property
    def change_pipes(self) -> Path:
        """The pipes by which processes tell each other of changes; empty while none runs."""
        return self.root / "change-pipes"

    @property
    def lock(self) -> Path:
        """The file whose lock one running server holds."""
        return self.root / "podstead.lock"
