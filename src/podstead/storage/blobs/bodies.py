"""The bytes of one version, in memory if they are few, else in the file of a blob."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from podstead.core.errors import StorageError
from podstead.core.value import Value
from podstead.storage.blobs.disk import run_to_end

CHUNK_BYTES = 256 * 1024
"""The amount of a large body that is held in memory."""


class ContentBody(Value):
    """An OpenBody in memory."""

    content: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    @property
    def file_path(self) -> None:
        return None

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        yield self.content[start:end]


@dataclass(frozen=True, slots=True)
class FileBody:
    """An OpenBody in a file."""

    path: Path
    size_bytes: int
    executor: Executor

    @property
    def content(self) -> None:
        return None

    @property
    def file_path(self) -> str:
        return str(self.path)

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Stream the bytes from ``start`` up to, not including, ``end``. Raises StorageError."""
        end = self.size_bytes if end is None else min(end, self.size_bytes)
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise StorageError("A large body could not be opened") from error
        try:
            while start < end:
                chunk = await self._read(descriptor, min(CHUNK_BYTES, end - start), start)
                start += len(chunk)
                yield chunk
        finally:
            os.close(descriptor)

    async def _read(self, descriptor: int, size_bytes: int, start: int) -> bytes:
        try:
            chunk = await run_to_end(
                self.executor, partial(os.pread, descriptor, size_bytes, start)
            )
        except OSError as error:
            raise StorageError("A large body could not be read") from error
        if not chunk:
            raise StorageError("A large body is shorter than it should be")
        return chunk
