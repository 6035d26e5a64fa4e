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


class OpenFile:
    """A file that is open for reading, until nothing refers to it any more."""

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self.descriptor = -1
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


@dataclass(frozen=True, slots=True)
class FileBody:
    """An OpenBody in a file. It can be read to its end even after the file has been removed."""

    file: OpenFile
    size_bytes: int
    executor: Executor
    path: Path | None = None
    """Where others can open it, too, as long as this object exists."""

    @property
    def content(self) -> None:
        return None

    @property
    def file_path(self) -> str | None:
        return None if self.path is None else str(self.path)

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Stream the bytes from ``start`` up to, not including, ``end``. Raises StorageError."""
        end = self.size_bytes if end is None else min(end, self.size_bytes)
        while start < end:
            chunk = await self._read(min(CHUNK_BYTES, end - start), start)
            start += len(chunk)
            yield chunk

    async def _read(self, size_bytes: int, start: int) -> bytes:
        read = partial(os.pread, self.file.descriptor, size_bytes, start)
        try:
            chunk = await run_to_end(self.executor, read)
        except OSError as error:
            raise StorageError("A large body could not be read") from error
        if not chunk:
            raise StorageError("A large body is shorter than it should be")
        return chunk
