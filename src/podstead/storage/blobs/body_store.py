"""The protocol of what keeps large bodies, their names, and bodies that are open.

A blob never changes and is never overwritten: each version of a body gets a new name. Which blobs
are in use is recorded in the engine's rows, not here.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from podstead.core.errors import StorageError
from podstead.core.value import Value
from podstead.storage import files, open_body, protocol
from podstead.storage.records import BlobId


class BodyMissing(StorageError):
    """There is no blob of that name. It was removed if nothing refers to it any more."""


class BodyDraft(Protocol):
    """One large body that is being received; leaving its context removes it unless published.

    Calls must not overlap.
    """

    @property
    def size_bytes(self) -> int: ...

    @property
    def blob(self) -> BlobId:
        """The ID of the blob with the content that was synced."""

    async def __aenter__(self) -> Self:
        """Begin. Raises StorageError, including DiskFull."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    async def append(self, piece: bytes) -> None:
        """Append bytes, of which few are held in memory. Raises StorageError."""

    async def sync(self) -> None:
        """Receive the rest of the bytes, so that the ID is known. Raises StorageError."""

    async def publish(self) -> None:
        """Store the content durably as the blob. Raises StorageError."""


class StoredDrafts(protocol.UploadDrafts, Protocol):
    """The drafts of resumable uploads, as the store of bodies keeps them."""

    async def read(self, name: str, size_bytes: int) -> bytes:
        """All bytes of a small draft of that size. Raises StorageError."""

    async def list(self, *, before_ms: int) -> list[str]:
        """The drafts that have not changed since ``before_ms``. Raises StorageError."""


class BodyStore(Protocol):
    """Large bodies, and the drafts of resumable uploads. For one event loop."""

    @property
    def removal_delay_s(self) -> float:
        """How long a body must not be removed after it is no longer in use, so that :meth:`remove`
        knows who is reading it."""

    @property
    def uploads(self) -> StoredDrafts:
        """The drafts of resumable uploads."""

    def close(self) -> None:
        """Release what the store holds. Work in progress may finish."""

    def draft(self, content_type: str | None) -> BodyDraft:
        """A draft of a new blob, which has that type if others may be sent to it."""

    def draft_of_upload(
        self, upload: str, size_bytes: int, content_type: str | None
    ) -> AbstractAsyncContextManager[BodyDraft]:
        """A draft of a new blob with the first bytes of the draft of an upload, to which nothing is
        appended. Raises StorageError."""

    async def open(self, blob: BlobId, size_bytes: int) -> open_body.OpenBody:
        """Open a blob, which can be read from then on whether it is removed or not.

        Raises BodyMissing, and StorageError, also if it is damaged.
        """

    def name_copy(self, blob: BlobId) -> BlobId:
        """A new name for a copy of a blob."""

    async def copy(self, copies: Iterable[tuple[BlobId, BlobId]]) -> None:
        """Give each first blob a copy with the name of the second, durably. Raises BodyMissing,
        StorageError."""

    async def remove(self, blobs: Iterable[BlobId]) -> Sequence[BlobId]:
        """Remove those of the blobs that nobody is reading, and return those that are gone.

        Raises StorageError.
        """

    async def remove_drafts(self, *, before_ms: int) -> None:
        """Remove drafts that have not grown since ``before_ms``. Raises StorageError."""


BodyStoreFactory = Callable[[protocol.Store], BodyStore]
"""Creates the store of bodies for an engine that is being opened."""


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
            chunk = await files.run_to_end(self.executor, read)
        except OSError as error:
            raise StorageError("A large body could not be read") from error
        if not chunk:
            raise StorageError("A large body is shorter than it should be")
        return chunk


DRAFTS: Final = "drafts"
"""The directory of bodies that are still being received."""

UPLOADS: Final = "uploads"
"""The directory of the drafts of resumable uploads, and the prefix of their parts."""

BODIES: Final = "bodies"
"""The prefix of blobs that are objects."""

DRAFT_BODY: Final = "body"


def blob_path(blobs: Path, blob: BlobId) -> Path:
    """The file of a blob, whether it exists or not."""
    return blobs / blob[:2] / blob[2:4] / blob


def draft_path(blobs: Path, name: str) -> Path:
    """The file of the draft of an upload, whether it exists or not."""
    return blobs / UPLOADS / name / DRAFT_BODY
