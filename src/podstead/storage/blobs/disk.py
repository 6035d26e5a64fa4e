"""Writing bytes and names durably, without blocking the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar

from podstead.core.errors import DiskFull, StorageError
from podstead.storage.disk_space import is_full

T = TypeVar("T")


async def run_to_end(executor: Executor, call: Callable[[], T]) -> T:
    """Run ``call`` in a thread and wait until it ends, even if the task is cancelled.

    A file must not be closed or removed while a thread is still writing it.
    """
    future = asyncio.get_running_loop().run_in_executor(executor, call)
    await wait_for_end(future)
    return await future


async def wait_for_end(future: asyncio.Future[T]) -> None:
    """Wait until ``future`` is done, even if the task is cancelled."""
    try:
        await asyncio.wait([future])
    except asyncio.CancelledError:
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        raise


async def run_storing(executor: Executor, call: Callable[[], T], *, failed: str) -> T:
    """As :func:`run_to_end`. Raises DiskFull, and StorageError with the text ``failed``."""
    try:
        return await run_to_end(executor, call)
    except OSError as error:
        if is_full(error):
            raise DiskFull from error
        raise StorageError(failed) from error


def write_all(descriptor: int, pieces: Sequence[bytes]) -> None:
    """Write the pieces to an open file. Raises OSError."""
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def sync_content(descriptor: int) -> None:
    """Flush the content of an open file to disk. Raises OSError."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:  # macOS, whose fsync does not flush the drive's cache
        fcntl.fcntl(descriptor, full_sync)
    else:
        os.fdatasync(descriptor)


def sync_directory(directory: Path) -> None:
    """Flush the names in a directory to disk. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
