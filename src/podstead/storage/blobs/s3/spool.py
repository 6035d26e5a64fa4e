"""What has been received of a body and not been stored yet, in a file without a name.

It keeps bodies that arrive slowly out of memory, and vanishes with its process.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from podstead.core.errors import DiskFull, StorageError
from podstead.storage.blobs.bodies import CHUNK_BYTES
from podstead.storage.blobs.disk import run_to_end, write_all
from podstead.storage.disk_space import DiskSpace, is_full

_NAME_BYTES: Final = 16

Result = TypeVar("Result")


class Spool:
    """One such file. Calls must not overlap."""

    def __init__(self, directory: Path, executor: Executor, space: DiskSpace) -> None:
        self.size_bytes = 0
        self._directory = directory
        self._executor = executor
        self._space = space
        self._descriptor = -1
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0

    async def open(self) -> None:
        """Create the file. Raises StorageError, including DiskFull."""
        self._space.check()
        await self._run(self._create)

    def close(self) -> None:
        """Remove the file. Idempotent."""
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
            await self._run(self._write)

    async def read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` up to, not including, ``end``. Raises StorageError."""
        await self._run(self._write)
        content = await self._run(partial(self._read, start, end))
        if len(content) != end - start:
            raise StorageError("A large body could not be read back")
        return content

    async def empty(self) -> None:
        """Begin anew. Raises StorageError."""
        self._pieces, self._waiting_bytes, self.size_bytes = [], 0, 0
        await self._run(partial(os.truncate, self._descriptor, 0))

    async def _run(self, call: Callable[[], Result]) -> Result:
        try:
            return await run_to_end(self._executor, call)
        except OSError as error:
            if is_full(error):
                raise DiskFull from error
            raise StorageError("A large body could not be received") from error

    # --- in a thread --------------------------------------------------------------------------

    def _create(self) -> None:
        path = self._directory / secrets.token_hex(_NAME_BYTES)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        path.unlink()

    def _write(self) -> None:
        pieces, self._pieces, self._waiting_bytes = self._pieces, [], 0
        write_all(self._descriptor, pieces)

    def _read(self, start: int, end: int) -> bytes:
        pieces = []
        while start < end and (piece := os.pread(self._descriptor, end - start, start)):
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces)  # which copies nothing if there is one
