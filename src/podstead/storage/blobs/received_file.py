"""A file into which a body is received, of which little is buffered in memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TypeVar

from podstead.core.errors import StorageError
from podstead.storage.blobs.bodies import CHUNK_BYTES
from podstead.storage.blobs.disk import run_storing, sync_content, write_all
from podstead.storage.disk_space import DiskSpace

Result = TypeVar("Result")


class ReceivedFile:
    """One such file, which does not exist yet.

    Calls must not overlap, except that what has been written may be read at any time.
    """

    def __init__(self, path: Path, executor: Executor, space: DiskSpace) -> None:
        self.path = path
        self.size_bytes = 0
        self.written_bytes = 0
        """How much of it can be read."""
        self._executor = executor
        self._space = space
        self._descriptor = -1
        self._hash = hashlib.sha256()
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0

    @property
    def sha256(self) -> bytes:
        """The hash of what has been written."""
        return self._hash.digest()

    async def create(self, *, nameless: bool = False) -> None:
        """Create the file. Without a name, it vanishes with its process. Raises StorageError,
        including DiskFull."""
        self._space.check()
        await self.run(partial(self._create, nameless=nameless))

    def close(self) -> None:
        """Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    async def append(self, piece: bytes) -> None:
        """Append bytes, of which up to CHUNK_BYTES are buffered. Raises StorageError."""
        self._pieces.append(piece)
        self._waiting_bytes += len(piece)
        self.size_bytes += len(piece)
        if self._waiting_bytes >= CHUNK_BYTES:
            self._space.check(self._waiting_bytes)
            await self.run(self._write)

    async def flush(self) -> None:
        """Write what is buffered. Raises StorageError."""
        if self._pieces:
            await self.run(self._write)

    async def sync(self) -> None:
        """Flush all bytes to disk. Raises StorageError."""
        await self.run(self._write_and_sync)

    async def read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` up to, not including, ``end``, which have been written. Raises
        StorageError."""
        content = await self.run(partial(self._read, start, end))
        if len(content) != end - start:
            raise StorageError("A large body could not be read back")
        return content

    async def empty(self) -> None:
        """Begin anew. Raises StorageError."""
        self._pieces, self._waiting_bytes = [], 0
        self.size_bytes = self.written_bytes = 0
        self._hash = hashlib.sha256()
        await self.run(partial(os.truncate, self._descriptor, 0))

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run what works on the file in a thread. Raises StorageError, including DiskFull."""
        return await run_storing(self._executor, call, failed="A large body could not be received")

    # --- in a thread --------------------------------------------------------------------------

    def _create(self, *, nameless: bool) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = os.open(self.path, flags, mode=0o600)
        if nameless:
            self.path.unlink()

    def _write(self) -> None:
        pieces, self._pieces, self._waiting_bytes = self._pieces, [], 0
        for piece in pieces:
            self._hash.update(piece)
        write_all(self._descriptor, pieces)
        self.written_bytes = self.size_bytes

    def _write_and_sync(self) -> None:
        self._write()
        sync_content(self._descriptor)

    def _read(self, start: int, end: int) -> bytes:
        pieces = []
        while start < end and (piece := os.pread(self._descriptor, end - start, start)):
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces)  # which copies nothing if there is one
