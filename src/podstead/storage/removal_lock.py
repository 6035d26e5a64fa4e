"""Holding back the removal of files while a backup copies them.

Bodies and repositories that nothing refers to any more are removed by sweeps. A backup copies the
records first and then the files that they refer to, which may be out of use by then. So it holds a
shared lock on a file in the data root, which ends with its process, and sweeps remove files only
while they have the lock to themselves.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from podstead.core.errors import StorageError
from podstead.storage.files import try_lock

_PRIVATE_FILE: Final = 0o600
_WAIT_S: Final = 2.0
"""How long a sweep waits: longer than most sweeps of other workers, and shorter than backups."""
_NAP_S: Final = 0.05


@contextmanager
def removals_locked(lock: Path) -> Iterator[None]:
    """Keep files from being removed, in all processes; waits for removals in progress.

    Raises StorageError.
    """
    descriptor = _open(lock)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@asynccontextmanager
async def removals_allowed(lock: Path) -> AsyncIterator[bool]:
    """Whether files may be removed, as long as the context lasts. Raises StorageError."""
    descriptor = _open(lock)
    try:
        yield await _acquire(descriptor)
    finally:
        os.close(descriptor)


async def _acquire(descriptor: int) -> bool:
    for _ in range(int(_WAIT_S / _NAP_S)):
        if try_lock(descriptor):
            return True
        await asyncio.sleep(_NAP_S)
    return False


def _open(lock: Path) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
    except OSError as error:
        raise StorageError(f"{lock} could not be opened") from error
