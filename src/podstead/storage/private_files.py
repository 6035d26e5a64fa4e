"""How are secrets written to files? For this account only, and on the disk before they count."""

from __future__ import annotations

import os
from pathlib import Path

from podstead.storage.blobs.disk import sync_content, sync_directory, write_all

__all__ = ["sync_directory", "write_private"]

_PRIVATE_FILE = 0o600


def write_private(path: Path, content: bytes) -> None:
    """Make a file that is not there yet, and return once its content is on the disk.

    Its name is durable after :func:`sync_directory`. Raises OSError, and leaves no file then.
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
