"""Blobs as objects, by their random names.

``bodies/3fa9…`` is a blob, ``uploads/…`` has what has arrived of resumable uploads
(``uploads.py``). A body is received into a file without a name on the machine's own disk, whatever
time its sender takes, and stored from there in parts.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from podstead.core.errors import Overloaded, StorageError
from podstead.core.media_types import is_passive
from podstead.storage import disk_space, open_body, record_store
from podstead.storage.blobs import files
from podstead.storage.blobs.body_store import BODIES, UPLOADS, BodyMissing
from podstead.storage.blobs.s3 import objects, uploads
from podstead.storage.files import wait_for_end
from podstead.storage.records import BlobId


class Arrival:
    """The progress of one body. One task waits for it."""

    def __init__(self) -> None:
        self.was_complete = False
        """Whether the body was complete when the last wait ended."""
        self._bytes = 0
        self._is_complete = False
        self._changed = asyncio.Event()

    def advance(self, size_bytes: int) -> None:
        """So many bytes can be read by now."""
        self._bytes = size_bytes
        self._changed.set()

    def complete(self) -> None:
        """There will be no more, and all of them are wanted."""
        self._is_complete = True
        self._changed.set()

    async def wait(self, size_bytes: int) -> int:
        """Wait until so many bytes have arrived or the body is complete, and return how many of
        them there are."""
        while self._bytes < size_bytes and not self._is_complete:
            self._changed.clear()
            await self._changed.wait()
        self.was_complete = self._is_complete
        return min(self._bytes, size_bytes)


_THREADS: Final = 8
_COPIES_AT_ONCE: Final = 8
_NAME_BYTES: Final = 16

_MAX_ARRIVING_BYTES: Final = objects.PART_BYTES * objects.MAX_PARTS
"""Larger bodies need larger parts, so they are stored once their size is known."""

_MAX_TYPE_CHARACTERS: Final = 256
# S3 signs a header field as if all space in it were single, but the library signs it as it is. S3
# would refuse to store a body with any other type, each time.
_SIGNED_ALIKE: Final = re.compile(r"[!-~]+(?: [!-~]+)*")


class S3Bodies:
    """The blobs of one prefix in a bucket
    (:class:`~podstead.storage.blobs.body_store.BodyStore`)."""

    removal_delay_s: Final = 600.0

    def __init__(
        self,
        objects: objects.Objects,
        records: record_store.RecordStore,
        *,
        directory: Path,
        space: disk_space.DiskSpace,
    ) -> None:
        """``directory`` is on a disk of this machine and gets what is being received."""
        self._objects = objects
        self._directory = directory
        self._space = space
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="podstead-blobs")
        self.uploads = uploads.UploadParts(objects, records, self._new_file)

    def close(self) -> None:
        self._executor.shutdown(wait=False)

    def draft(self, content_type: str | None) -> S3Draft:
        if content_type is not None and not _may_be_read_there(content_type):
            content_type = None  # nobody is sent to it
        return S3Draft(self._objects, self._new_file(), content_type)

    @asynccontextmanager
    async def draft_of_upload(
        self, upload: str, size_bytes: int, content_type: str | None
    ) -> AsyncIterator[S3Draft]:
        async with self.draft(content_type) as draft:
            async for piece in self.uploads.body_of(upload, size_bytes).chunks():
                await draft.append(piece)
            yield draft

    async def open(self, blob: BlobId, size_bytes: int) -> S3Body:
        # Asked before anything is sent, so that the response can still say what is wrong.
        key, found_bytes = await _present(self._objects, blob)
        if found_bytes != size_bytes:
            raise StorageError("A large body is damaged")
        return S3Body(self._objects, key, files.digest_of(blob), size_bytes)

    def name_copy(self, blob: BlobId) -> BlobId:
        return files.copy_of(blob, secrets.token_hex(_NAME_BYTES))

    async def copy(self, copies: Iterable[tuple[BlobId, BlobId]]) -> None:
        turns = asyncio.Semaphore(_COPIES_AT_ONCE)

        async def copy(blob: BlobId, name: BlobId) -> None:
            async with turns:
                key, size_bytes = await _present(self._objects, blob)
                await self._objects.copy(key, key_of(name), size_bytes)

        try:
            async with asyncio.TaskGroup() as copying:
                for blob, name in copies:
                    copying.create_task(copy(blob, name))
        except ExceptionGroup as errors:  # "except*" would raise another group
            raise errors.exceptions[0] from None

    async def remove(self, blobs: Iterable[BlobId]) -> Sequence[BlobId]:
        removed = list(blobs)
        await self._objects.remove([key for blob in removed for key in object_names_of(blob)])
        return removed

    async def remove_drafts(self, *, before_ms: int) -> None:
        """There are none: the system removes the files when the process ends."""

    def _new_file(self) -> files.ReceivedFile:
        path = self._directory / secrets.token_hex(_NAME_BYTES)
        return files.ReceivedFile(path, self._executor, self._space)


def key_of(blob: BlobId) -> str:
    """The name of the object of a blob: without its hash, which is not known when the first parts
    are stored."""
    return f"{BODIES}/{files.random_name_of(blob)}"


def _may_be_read_there(content_type: str) -> bool:
    """Whether others may be sent to content of this type, and S3 certainly accepts the type."""
    return (
        len(content_type) <= _MAX_TYPE_CHARACTERS
        and _SIGNED_ALIKE.fullmatch(content_type) is not None
        and is_passive(content_type)
    )


def object_names_of(blob: BlobId) -> list[str]:
    """All names that the object of a blob can have.

    The last one is that of objects that were stored as a whole, by servers that knew the hash
    before.
    """
    return list(dict.fromkeys((key_of(blob), f"{BODIES}/{blob}")))


async def find_object(objects: objects.Objects, blob: BlobId) -> tuple[str, int] | None:
    """The name of the object of a blob, and its size in bytes. Raises StorageError."""
    for key in object_names_of(blob):
        size_bytes = await objects.size(key)
        if size_bytes is not None:
            return key, size_bytes
    return None


async def _present(objects: objects.Objects, blob: BlobId) -> tuple[str, int]:
    found = await find_object(objects, blob)
    if found is None:
        raise BodyMissing("A large body is missing")
    return found


class S3Draft:
    """One large body that is being received
    (:class:`~podstead.storage.blobs.body_store.BodyDraft`).

    Its parts are stored while it arrives, from the file, so that a slow sender holds none in
    memory. There is no object before :meth:`publish`, when its record has been written.
    """

    def __init__(
        self, objects: objects.Objects, file: files.ReceivedFile, content_type: str | None
    ) -> None:
        self._objects = objects
        self._file = file
        self._content_type = content_type
        self._name = secrets.token_hex(_NAME_BYTES)
        self._arrival = Arrival()
        self._storing: asyncio.Task[None] | None = None

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @property
    def blob(self) -> BlobId:
        return files.named_by_content(self._name, self._file.sha256)

    async def __aenter__(self) -> Self:
        await self._file.create(nameless=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._abandon()
        finally:
            self._file.close()

    async def append(self, piece: bytes) -> None:
        await self._file.append(piece)
        self._arrival.advance(self._file.written_bytes)
        if self._storing is None and objects.in_parts(self._file.written_bytes):
            self._storing = asyncio.create_task(
                self._objects.put_arriving(
                    self._key, self._file.read, self._arrival.wait, self._content_type
                )
            )

    async def sync(self) -> None:
        """Nothing lasts before it is stored."""
        await self._file.flush()
        self._arrival.advance(self._file.written_bytes)

    async def publish(self) -> None:
        if self._storing is not None and self.size_bytes <= _MAX_ARRIVING_BYTES:
            self._arrival.complete()
            try:
                await self._storing
            except objects.StaleRequest:
                pass  # S3 can be reached again
            except (StorageError, Overloaded):
                if self._arrival.was_complete:
                    raise
                # What was wrong while it arrived may have passed.
            else:
                return
        await self._abandon()
        await self._objects.put(self._key, self._file.read, self.size_bytes, self._content_type)

    @property
    def _key(self) -> str:
        return key_of(BlobId(self._name))

    async def _abandon(self) -> None:
        """Store nothing more, and leave nothing of what has been stored."""
        if self._storing is not None:
            self._storing.cancel()
            await wait_for_end(self._storing)
            if not self._storing.cancelled():
                self._storing.exception()  # which has been logged


class S3Body(open_body.StreamedBody):
    """An OpenBody in an object (:class:`~podstead.storage.open_body.AddressedBody`)."""

    def __init__(
        self, objects: objects.Objects, key: str, sha256: str | None, size_bytes: int
    ) -> None:
        """``sha256`` is in hexadecimal, ``None`` if it is not known."""
        self.size_bytes = size_bytes
        self._objects = objects
        self._key = key
        self._sha256 = sha256

    async def address(self, content_type: str, *, lasts_s: int) -> str | None:
        if await self._objects.content_type(self._key) != content_type:
            return None
        return await self._objects.address(self._key, lasts_s=lasts_s)

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Stream the bytes from ``start`` up to, not including, ``end``.

        Who reads the whole body gets its last bytes only if its hash is right. Raises StorageError.
        """
        end = self.size_bytes if end is None else min(end, self.size_bytes)
        pieces = self._objects.read(self._key, start, end)
        if self._sha256 is None or start > 0 or end < self.size_bytes:
            async for piece in pieces:
                yield piece
            return
        hashed = hashlib.sha256()
        held = b""
        async for piece in pieces:
            if held:
                yield held
            hashed.update(piece)
            held = piece
        if hashed.hexdigest() != self._sha256:
            raise StorageError("A large body is damaged: its hash does not match")
        yield held


_STORED_AT_ONCE: Final = 2
"""Parts of more bodies than that would wait for their turn until they give up."""


class ObjectBlobs:
    """Implements StoredBlobs (:mod:`podstead.storage.copying.bodies`)."""

    def __init__(self, objects: objects.Objects) -> None:
        self._objects = objects
        self._turns = asyncio.Semaphore(_STORED_AT_ONCE)

    async def size_of(self, blob: BlobId) -> int | None:
        found = await find_object(self._objects, blob)
        return None if found is None else found[1]

    async def read(self, blob: BlobId, size_bytes: int) -> AsyncIterator[bytes]:
        found = await find_object(self._objects, blob)
        if found is None:
            raise StorageError("A large body is missing")
        async for piece in self._objects.read(found[0], 0, size_bytes):
            yield piece

    async def listed(self) -> AsyncIterator[objects.ListedObject]:
        """The objects of all bodies and parts of uploads. Raises StorageError."""
        for folder in (BODIES, UPLOADS):
            async for page in self._objects.pages(folder):
                for each in page:
                    yield each

    def object_names_of(self, blob: BlobId) -> Sequence[str]:
        """All names that the object of a body can have."""
        return object_names_of(blob)

    async def exists(self, key: str) -> bool:
        """Whether there is an object of that name. Raises StorageError."""
        return await self._objects.size(key) is not None

    async def set_aside(self, key: str, size_bytes: int, folder: str) -> str:
        """Move an object to where nothing looks for it, and return its name there. Raises
        StorageError."""
        aside = f"set-aside/{folder}/{key}"
        await self._objects.copy(key, aside, size_bytes)
        await self._objects.remove([key])
        return aside

    async def write(self, blob: BlobId, size_bytes: int, content: AsyncIterator[bytes]) -> None:
        async with self._turns:
            await self._objects.put(
                key_of(blob), _SequentialReader(content, size_bytes), size_bytes
            )


class _SequentialReader:
    """Reads a stream part after part, as an object is stored."""

    def __init__(self, content: AsyncIterator[bytes], size_bytes: int) -> None:
        self._content = content
        self._size_bytes = size_bytes
        self._read_bytes = 0
        self._held = bytearray()

    async def __call__(self, start: int, end: int) -> bytes:
        """The next bytes, from ``start`` up to, not including, ``end``. Raises StorageError, and
        errors of the content."""
        if start != self._read_bytes:
            raise StorageError("A large body was not stored in its order")
        while len(self._held) < end - start and (piece := await anext(self._content, b"")):
            self._held += piece
        if end == self._size_bytes:
            # The end of the content says whether it is what it should be.
            self._held += await anext(self._content, b"")
        part = bytes(self._held[: end - start])
        if len(part) < end - start or (end == self._size_bytes and len(self._held) > len(part)):
            raise StorageError("A large body is not as long as it should be")
        del self._held[: end - start]
        self._read_bytes = end
        return part
