"""Where is the file of each blob? Under two levels of directories, by its random name.

``blobs/3f/a9/3fa9…-<SHA-256>`` is a blob that is complete and on the disk, ``blobs/drafts/3fa9…``
one that is still coming in. Blobs of earlier versions have no hash in their names. The engine's
rows tell which blobs are in use; nothing here decides that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from podstead.core.errors import StorageError
from podstead.storage.blobs.bodies import FileBody
from podstead.storage.blobs.disk import run_to_end
from podstead.storage.blobs.drafts import BlobDraft
from podstead.storage.blobs.verification import Verification
from podstead.storage.disk_space import DiskSpace
from podstead.storage.records import BlobId

DRAFTS = "drafts"

_THREADS = 8
_NAME_BYTES = 16


class LocalBlobs:
    """The blobs below one directory, which must exist with its ``drafts`` directory."""

    def __init__(self, directory: Path, space: DiskSpace) -> None:
        self._directory = directory
        self._space = space
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="podstead-blobs")
        self._verification = Verification(self._executor)

    def close(self) -> None:
        """Release the threads; what they are at is finished."""
        self._verification.close()
        self._executor.shutdown(wait=False)

    def draft(self) -> BlobDraft:
        """A new blob to be filled."""
        name = secrets.token_hex(_NAME_BYTES)
        return BlobDraft(
            name,
            draft_path=self._directory / DRAFTS / name,
            path_of=self.path_of,
            executor=self._executor,
            space=self._space,
        )

    async def open(self, blob: BlobId, size_bytes: int) -> FileBody:
        """Open a blob that must be there whole and as it was stored. Raises StorageError."""
        path = self.path_of(blob)
        try:
            status = path.stat()
        except OSError as error:
            raise StorageError("A large body is missing") from error
        if not stat.S_ISREG(status.st_mode) or status.st_size != size_bytes:
            raise StorageError("A large body is damaged")
        await self._verification.check(blob, path, status)
        return FileBody(path, size_bytes, self._executor)

    async def remove(self, blobs: Iterable[BlobId]) -> None:
        """Remove blobs, those that are there. Raises StorageError."""
        paths = [self.path_of(blob) for blob in blobs]
        await self._run(partial(_unlink_all, paths))

    async def remove_drafts(self, *, before_ms: int) -> None:
        """Remove drafts that nobody has added to since ``before_ms``. Raises StorageError."""
        await self._run(partial(_unlink_older, self._directory / DRAFTS, before_ms))

    def path_of(self, blob: BlobId) -> Path:
        """Where the blob is or will be."""
        return self._directory / blob[:2] / blob[2:4] / blob

    async def _run(self, removal: Callable[[], None]) -> None:
        try:
            await run_to_end(self._executor, removal)
        except OSError as error:
            raise StorageError("Large bodies could not be removed") from error


def _unlink_all(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _unlink_older(directory: Path, before_ms: int) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            # Another process may publish or remove it at this moment.
            with contextlib.suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime * 1000 < before_ms:
                    Path(entry.path).unlink()
