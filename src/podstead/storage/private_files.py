"""Files for secrets: readable by this account only, and synced to disk before they are used."""

from __future__ import annotations

import os
from pathlib import Path

from podstead.storage.blobs.disk import sync_content, sync_directory, write_all

__all__ = ["make_private_directory", "sync_directory", "write_private"]

_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700


def write_private(path: Path, content: bytes) -> None:
    """Create a file that must not exist yet, and return once its content is on disk.

    The name is durable after :func:`sync_directory`. If it raises OSError, no file is left behind.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
    try:
        write_all(descriptor, [content])
        sync_content(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def make_private_directory(directory: Path) -> None:
    """Create a directory and its missing parents, all for this account only. Raises OSError."""
    if not directory.is_dir():
        make_private_directory(directory.parent)  # mkdir would create it with the usual mode
        directory.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)
