"""The drafts of resumable uploads: files that grow over several requests and several days.

``blobs/uploads/<name>/body`` holds what has been received. Whoever reads or changes a draft holds
the lock of its directory, in all workers. A request that waits for the lock creates ``wanted``
beside the body, and the holder is expected to look for it: the connection that the holder reads
from is often dead although the server has not noticed yet, and its client is the one that waits.

Which drafts are in use is recorded elsewhere. The bytes beyond the recorded offset may not have
reached the disk before a crash, so ``truncate`` removes them first.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from podstead.core.errors import Overloaded, StorageError
from podstead.storage.blobs.body_store import CHUNK_BYTES, DRAFT_BODY, FileBody, OpenFile
from podstead.storage.disk_space import DiskSpace
from podstead.storage.files import (
    run_storing,
    sync_content,
    sync_directory,
    try_lock,
    write_all,
)
from podstead.storage.uploads import DraftGone

LOCK_WAIT_S: Final = 10.0
"""How long a request waits for another one that uses the same draft."""

_LOCK_PERIOD_S: Final = 0.05
_WANTED_PERIOD_S: Final = 0.25
_COPY: Final = "copy"
_WANTED: Final = "wanted"
_FILE: Final = 0o600
_DIRECTORY: Final = 0o700

Result = TypeVar("Result")


class DraftDirectory:
    """The drafts below one directory, which must exist
    (:class:`podstead.storage.protocol.UploadDrafts`)."""

    def __init__(self, directory: Path, executor: Executor, space: DiskSpace) -> None:
        self._directory = directory
        self._executor = executor
        self._space = space

    async def create(self, name: str) -> None:
        """Create an empty draft. Raises StorageError, including DiskFull."""
        self._space.check()
        await _run(self._executor, partial(_create, self._directory, name))

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator["LockedDraft"]:
        """Lock a draft. Raises DraftGone, Overloaded if it stays locked, and StorageError."""
        directory = self._directory / name
        lock = await self._lock(directory)
        try:
            yield LockedDraft(directory, self._executor, self._space)
        finally:
            os.close(lock)

    def body_of(self, name: str) -> Path:
        """The file of a draft."""
        return self._directory / name / DRAFT_BODY

    async def read(self, name: str, size_bytes: int) -> bytes:
        """All bytes of a small draft of that size. Raises StorageError."""
        body = _open(self.body_of(name), size_bytes, self._executor)
        return b"".join([chunk async for chunk in body.chunks()])

    async def remove(self, name: str) -> None:
        """Remove a draft, if it exists. Raises StorageError."""
        await _run(self._executor, partial(_remove, self._directory / name))

    async def list(self, *, before_ms: int) -> list[str]:
        """The drafts that have not changed since ``before_ms``. Raises StorageError."""
        return await _run(self._executor, partial(_older, self._directory, before_ms))

    async def _lock(self, directory: Path) -> int:
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError as error:
            raise DraftGone from error
        except OSError as error:
            raise StorageError("An upload could not be opened") from error
        try:
            await self._acquire(descriptor, directory)
            if not os.access(directory, os.F_OK):  # removed while we waited
                raise DraftGone
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    async def _acquire(self, descriptor: int, directory: Path) -> None:
        wanted = directory / _WANTED
        try:
            for _ in range(int(LOCK_WAIT_S / _LOCK_PERIOD_S)):
                if try_lock(descriptor):
                    return
                with suppress(OSError):
                    os.close(os.open(wanted, os.O_WRONLY | os.O_CREAT, _FILE))
                await asyncio.sleep(_LOCK_PERIOD_S)
        finally:
            with suppress(OSError):
                os.unlink(wanted)  # noqa: PTH108 - takes no time
        raise Overloaded("Another request is using this upload; try again")


class LockedDraft:
    """A draft whose lock is held (:class:`podstead.storage.protocol.UploadDraft`)."""

    def __init__(self, directory: Path, executor: Executor, space: DiskSpace) -> None:
        self._directory = directory
        self._body = directory / DRAFT_BODY
        self._executor = executor
        self._space = space
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0

    def open(self, size_bytes: int) -> FileBody:
        """The bytes of a draft of that size. Raises StorageError."""
        return _open(self._body, size_bytes, self._executor)

    async def truncate(self, size_bytes: int) -> None:
        """Remove what follows the first ``size_bytes``. Raises DraftGone if they are not there."""
        await self._run(partial(self._truncate, size_bytes))

    async def append(self, piece: bytes) -> None:
        """Append bytes, of which up to CHUNK_BYTES are buffered. Raises StorageError."""
        self._pieces.append(piece)
        self._waiting_bytes += len(piece)
        if self._waiting_bytes >= CHUNK_BYTES:
            self._space.check(self._waiting_bytes)
            await self._run(self._write)

    async def sync(self) -> None:
        """Flush all bytes to disk. Raises StorageError."""
        await self._run(self._write_and_sync)

    async def wanted(self) -> None:
        """Wait until another request waits for the draft.

        It may belong to another worker, and workers share only files.
        """
        wanted = self._directory / _WANTED
        while not os.access(wanted, os.F_OK):  # noqa: ASYNC110 - there is no event between workers
            await asyncio.sleep(_WANTED_PERIOD_S)

    async def _run(self, call: Callable[[], Result]) -> Result:
        return await _run(self._executor, call)

    # --- in a thread --------------------------------------------------------------------------

    def _truncate(self, size_bytes: int) -> None:
        try:
            status = self._body.stat()
        except FileNotFoundError as error:
            raise DraftGone from error
        if status.st_size < size_bytes:
            raise DraftGone
        if status.st_nlink > 1:
            # A resource may consist of this very file by now, and resources never change.
            copy = self._directory / _COPY
            shutil.copyfile(self._body, copy)
            copy.replace(self._body)
        if status.st_size > size_bytes:
            os.truncate(self._body, size_bytes)

    def _write(self) -> None:
        pieces, self._pieces, self._waiting_bytes = self._pieces, [], 0
        descriptor = os.open(self._body, os.O_WRONLY | os.O_APPEND)
        try:
            write_all(descriptor, pieces)
        finally:
            os.close(descriptor)

    def _write_and_sync(self) -> None:
        self._write()
        descriptor = os.open(self._body, os.O_RDWR)
        try:
            sync_content(descriptor)
        finally:
            os.close(descriptor)


async def _run(executor: Executor, call: Callable[[], Result]) -> Result:
    return await run_storing(executor, call, failed="An upload could not be stored")


def _open(path: Path, size_bytes: int, executor: Executor) -> FileBody:
    try:
        return FileBody(OpenFile(path), size_bytes, executor)
    except OSError as error:
        raise StorageError("An upload could not be opened") from error


def _create(directory: Path, name: str) -> None:
    draft = directory / name
    draft.mkdir(_DIRECTORY)
    os.close(os.open(draft / DRAFT_BODY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE))
    sync_directory(draft)
    sync_directory(directory)


def _remove(directory: Path) -> None:
    for name in (DRAFT_BODY, _COPY, _WANTED):
        (directory / name).unlink(missing_ok=True)
    try:
        directory.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:  # a request has just asked for it: the next sweep
            raise


def _older(directory: Path, before_ms: int) -> list[str]:
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                changed_s = entry.stat(follow_symlinks=False).st_mtime
                with suppress(FileNotFoundError):
                    changed_s = max(changed_s, (Path(entry.path) / DRAFT_BODY).stat().st_mtime)
                if changed_s * 1000 < before_ms:
                    found.append(entry.name)
    return found
