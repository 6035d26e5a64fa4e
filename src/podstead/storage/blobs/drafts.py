"""Receiving a large body into a draft, which is published once all of it is on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from podstead.storage.blobs.disk import sync_directory
from podstead.storage.blobs.received_file import ReceivedFile
from podstead.storage.blobs.verification import named_by_content
from podstead.storage.records import BlobId


class BlobDraft:
    """One large body that is being received; leaving its context removes it unless published.

    Calls must not overlap.
    """

    def __init__(self, name: str, file: ReceivedFile, *, path_of: Callable[[BlobId], Path]) -> None:
        """``name`` is random. The file must be in an existing directory on the file system of the
        paths that ``path_of`` returns."""
        self._name = name
        self._file = file
        self._path_of = path_of

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @property
    def blob(self) -> BlobId:
        """The ID of the blob with the content that was synced."""
        return named_by_content(self._name, self._file.sha256)

    async def __aenter__(self) -> Self:
        """Create the file. Raises StorageError, including DiskFull."""
        await self._file.create()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        self._file.path.unlink(missing_ok=True)

    async def append(self, piece: bytes) -> None:
        """Append bytes, of which up to CHUNK_BYTES are buffered. Raises StorageError."""
        await self._file.append(piece)

    async def sync(self) -> None:
        """Flush all bytes to disk. Raises StorageError."""
        await self._file.sync()

    async def publish(self) -> None:
        """Rename the file to its final name among the blobs, durably. Raises StorageError."""
        await self._file.run(self._publish)

    def _publish(self) -> None:
        """Rename the file, and sync every directory above it, any of which may be new."""
        blob_path = self._path_of(self.blob)
        directory = blob_path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.path.rename(blob_path)
        for changed in (directory, directory.parent, directory.parent.parent):
            sync_directory(changed)
