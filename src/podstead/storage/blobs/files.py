"""Files of large bodies: receiving one, and verifying that its bytes are those that were stored.

The name of a blob ends in its SHA-256. A process hashes the entire file before it opens a blob for
the first time, and again if the file has changed since.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from podstead.core.errors import StorageError
from podstead.storage.blobs.body_store import CHUNK_BYTES
from podstead.storage.disk_space import DiskSpace
from podstead.storage.files import run_storing, run_to_end, sync_content, write_all
from podstead.storage.records import BlobId

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
