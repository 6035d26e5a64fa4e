"""Receiving a large body into a draft, which is published once all of it is on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from types import TracebackType
from typing import Self

from podstead.core.errors import DiskFull, StorageError
from podstead.storage.blobs.bodies import CHUNK_BYTES
from podstead.storage.blobs.disk import run_to_end, sync_content, sync_directory, write_all
from podstead.storage.blobs.verification import named_by_content
from podstead.storage.disk_space import DiskSpace, is_full
from podstead.storage.records import BlobId


class BlobDraft:
    """One large body that is being received; leaving its context removes it unless published.

    Calls must not overlap.
    """

    def __init__(
        self,
        name: str,
        *,
        draft_path: Path,
        path_of: Callable[[BlobId], Path],
        executor: Executor,
        space: DiskSpace,
    ) -> None:
        """``name`` is random. ``draft_path`` must be in an existing directory on the file system of
        the paths that ``path_of`` returns."""
        self.size_bytes = 0
        self._name = name
        self._hash = hashlib.sha256()
        self._draft_path = draft_path
        self._path_of = path_of
        self._executor = executor
        self._space = space
        self._descriptor = -1
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0

    @property
    def blob(self) -> BlobId:
        """The ID of the blob with the content that was synced."""
        return named_by_content(self._name, self._hash.digest())

    async def __aenter__(self) -> Self:
        """Create the file. Raises StorageError, including DiskFull."""
        self._space.check()
        await self._run(self._create)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)
        self._draft_path.unlink(missing_ok=True)

    async def append(self, piece: bytes) -> None:
        """Append bytes, of which up to CHUNK_BYTES are buffered. Raises StorageError."""
        self._pieces.append(piece)
        self._waiting_bytes += len(piece)
        self.size_bytes += len(piece)
        if self._waiting_bytes >= CHUNK_BYTES:
            self._space.check(self._waiting_bytes)
            await self._run(self._write)

    async def sync(self) -> None:
        """Flush all bytes to disk. Raises StorageError."""
        await self._run(self._write_and_sync)

    async def publish(self) -> None:
        """Rename the file to its final name among the blobs, durably. Raises StorageError."""
        await self._run(self._publish)

    async def _run(self, call: Callable[[], None]) -> None:
        try:
            await run_to_end(self._executor, call)
        except OSError as error:
            if is_full(error):
                raise DiskFull from error
            raise StorageError("A large body could not be stored") from error

    # --- in a thread --------------------------------------------------------------------------

    def _create(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._descriptor = os.open(self._draft_path, flags, mode=0o600)

    def _write(self) -> None:
        pieces, self._pieces, self._waiting_bytes = self._pieces, [], 0
        for piece in pieces:
            self._hash.update(piece)
        write_all(self._descriptor, pieces)

    def _write_and_sync(self) -> None:
        self._write()
        sync_content(self._descriptor)

    def _publish(self) -> None:
        """Rename the file, and sync every directory above it, any of which may be new."""
        blob_path = self._path_of(self.blob)
        directory = blob_path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._draft_path.rename(blob_path)
        for changed in (directory, directory.parent, directory.parent.parent):
            sync_directory(changed)
