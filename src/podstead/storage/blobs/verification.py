"""Verification that the bytes of a large body are those that were stored.

The name of a blob ends in its SHA-256. A process hashes the entire file before it opens a blob for
the first time, and again if the file has changed since.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Final

from podstead.core.errors import StorageError
from podstead.storage.blobs.disk import run_to_end
from podstead.storage.records import BlobId

MAX_VERIFIED_BLOBS: Final = 65_536
"""The verified blobs that a process remembers; it verifies others again."""

_PIECE_BYTES: Final = 1024 * 1024
"""The amount that is hashed at once, because other work on blobs shares the threads."""

_SEPARATOR: Final = "-"

FileState = tuple[int, int, int, int]
"""What changes when a file is replaced or written: inode, size, mtime and ctime in ns."""


def named_by_content(name: str, digest: bytes) -> BlobId:
    """The ID of a blob with that random name and that SHA-256."""
    return BlobId(f"{name}{_SEPARATOR}{digest.hex()}")


def copy_of(blob: BlobId, name: str) -> BlobId:
    """The ID of a blob with that random name and the same content."""
    digest = digest_of(blob)
    return BlobId(name if digest is None else f"{name}{_SEPARATOR}{digest}")


def random_name_of(blob: BlobId) -> str:
    """The random name of a blob."""
    return blob.partition(_SEPARATOR)[0]


def digest_of(blob: BlobId) -> str | None:
    """The SHA-256 of a blob in hexadecimal; ``None`` for a blob of an earlier version."""
    return blob.partition(_SEPARATOR)[2] or None


class Verification:
    """Verifies blobs and remembers which were intact. Used from one event loop only."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._verified: dict[BlobId, FileState] = {}
        self._in_progress: dict[BlobId, asyncio.Task[bytes | None]] = {}

    def close(self) -> None:
        """Cancel verifications in progress."""
        for task in self._in_progress.values():
            task.cancel()

    async def check(self, blob: BlobId, path: Path, status: os.stat_result) -> None:
        """Verify a blob unless that was done before. Raises StorageError if it is damaged."""
        expected = digest_of(blob)
        if expected is None:
            return
        state = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if self._verified.get(blob) == state:
            return
        task = self._in_progress.get(blob)
        if task is None:
            # Concurrent readers share the task, which continues if the first of them is cancelled.
            task = asyncio.create_task(hash_file(self._executor, path))
            self._in_progress[blob] = task
            task.add_done_callback(lambda _: self._in_progress.pop(blob, None))
        found = await asyncio.shield(task)
        if found is None:
            raise StorageError("A large body could not be read")
        if found.hex() != expected:
            raise StorageError("A large body is damaged: its hash does not match")
        self._remember(blob, state)

    def _remember(self, blob: BlobId, state: FileState) -> None:
        self._verified.pop(blob, None)
        if len(self._verified) >= MAX_VERIFIED_BLOBS:
            del self._verified[next(iter(self._verified))]
        self._verified[blob] = state


async def hash_file(executor: Executor, path: Path) -> bytes | None:
    """The SHA-256 of a file; ``None`` if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    hashed = hashlib.sha256()
    try:
        start = 0
        while piece := await run_to_end(executor, partial(_read_into, hashed, descriptor, start)):
            start += piece
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return hashed.digest()


def _read_into(hashed: hashlib._Hash, descriptor: int, start: int) -> int:
    piece = os.pread(descriptor, _PIECE_BYTES, start)
    hashed.update(piece)
    return len(piece)
