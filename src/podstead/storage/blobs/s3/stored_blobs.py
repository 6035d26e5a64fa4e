"""The bodies of one prefix for commands, which know their names from the records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from podstead.core.errors import StorageError
from podstead.storage.blobs.paths import BODIES, UPLOADS
from podstead.storage.blobs.s3.bodies import find_object, key_of, object_names_of
from podstead.storage.blobs.s3.objects import ListedObject, Objects
from podstead.storage.records import BlobId

_STORED_AT_ONCE: Final = 2
"""Parts of more bodies than that would wait for their turn until they give up."""


class ObjectBlobs:
    """Implements StoredBlobs (:mod:`podstead.storage.copying.bodies`)."""

    def __init__(self, objects: Objects) -> None:
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

    async def listed(self) -> AsyncIterator[ListedObject]:
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
