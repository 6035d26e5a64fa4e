"""Nothing that a repair takes out of use is deleted: it goes to a dated folder in the root.

``list.jsonl`` there says what each thing was and where it belonged.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from podstead.storage.blobs.disk import sync_directory
from podstead.storage.private_files import write_private


@dataclass(slots=True)
class SetAside:
    """The folder for what one repair sets aside, created with the first of it."""

    folder: Path
    _number: int = field(default=0)

    def move(self, path: Path, *, code: str, where: str) -> None:
        """Move a file or folder. Raises OSError."""
        path.rename(self._note(path.name, code=code, where=where))
        sync_directory(self.folder)
        sync_directory(path.parent)

    def keep_copy(self, path: Path, *, code: str, where: str) -> None:
        """Keep a second name of an immutable file, or a copy. Raises OSError."""
        target = self._note(path.name, code=code, where=where)
        try:
            target.hardlink_to(path)
        except OSError:
            shutil.copyfile(path, target)
        sync_directory(self.folder)

    def write(self, content: bytes, *, code: str, where: str, **facts: object) -> None:
        """Write bytes. Raises OSError."""
        write_private(self._note("content", code=code, where=where, **facts), content)
        sync_directory(self.folder)

    def note(self, *, code: str, where: str, **facts: object) -> None:
        """List something of which nothing is left but facts. Raises OSError."""
        self._list({"code": code, "where": where, **facts})

    def _note(self, name: str, **facts: object) -> Path:
        self._number += 1
        target = self.folder / f"{self._number:06}-{name}"
        self._list({**facts, "file": target.name})
        return target

    def _list(self, facts: dict[str, object]) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(mode=0o700, parents=True)
            self.folder.parent.chmod(0o700)
            sync_directory(self.folder.parent)
        descriptor = os.open(
            self.folder / "list.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        try:
            os.write(descriptor, msgspec.json.encode(facts) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
