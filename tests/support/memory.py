"""Where the files of tests are kept in memory."""

from __future__ import annotations

import os
from pathlib import Path

MEMORY = Path("/dev/shm")
MEMORY_BYTES = 3 * 1024**3
"""What all tests together need at a time, with some to spare."""


def has_room_in_memory() -> bool:
    """Whether all that the tests write at a time fits there."""
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return False
    status = os.statvfs(MEMORY)
    is_executable = not status.f_flag & os.ST_NOEXEC  # some tests write programs
    return is_executable and status.f_bavail * status.f_frsize >= MEMORY_BYTES
