"""Files that are synced to disk before they are used, those for secrets, and why a file is
unusable."""

import asyncio
import contextlib
import fcntl
import os
import pwd
import secrets
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


_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700


def write_private(path: Path, content: bytes, *, mode: int = _PRIVATE_FILE) -> None:
    """Create a file that must not exist yet, and return once its content is on disk.

    The name is durable after :func:`sync_directory`. If it raises OSError, no file is left behind.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        write_all(descriptor, [content])
        sync_content(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def replace_private(path: Path, content: bytes, *, mode: int = _PRIVATE_FILE) -> None:
    """Create a file, or replace it in one step, and return once that is on disk. Raises OSError."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    write_private(draft, content, mode=mode)
    try:
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def make_private_directory(directory: Path) -> None:
    """Create a directory and its missing parents, all for this account only. Raises OSError."""
    if not directory.is_dir():
        make_private_directory(directory.parent)  # mkdir would create it with the usual mode
        directory.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed; False if others have locked it. Raises OSError."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def why_not_usable(path: Path) -> str:
    """The reason in a few words, and what to do; empty if there is none to be seen."""
    for place in (path, *path.parents):
        try:
            owner, flags = place.stat().st_uid, os.statvfs(place).f_flag
        except OSError:
            continue
        own = os.geteuid()
        if own not in (0, owner):
            return (
                f"{place} belongs to {_name(owner)}, and this is {_name(own)}: run the command as "
                f"{_name(owner)}"
            )
        return f"{place} is on a read-only file system" if flags & os.ST_RDONLY else ""
    return ""


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return f"the user {user_id}"
