"""The drafts of resumable uploads: parts that any node can continue.

``uploads/<name>/<epoch>-<start>-<size>`` is a part of a draft, stored once and never changed. Each
request that continues a draft has a greater epoch than those before. A part counts up to where a
part of a later epoch begins, so a request that has lost the draft cannot change what follows.

Which drafts are in use, and how much of each counts, is recorded elsewhere. Parts beyond that are
removed by ``truncate``.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec

from podstead.storage.blobs.paths import UPLOADS
from podstead.storage.blobs.received_file import ReceivedFile
from podstead.storage.blobs.s3.draft_locks import DraftLock, DraftLocks
from podstead.storage.blobs.s3.objects import PART_BYTES, Objects
from podstead.storage.open_body import StreamedBody
from podstead.storage.record_store import RecordStore
from podstead.storage.uploads import DraftGone


class Part(msgspec.Struct, frozen=True, order=True):
    """A stored part of a draft."""

    epoch: int
    start: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.start + self.size_bytes


class Piece(msgspec.Struct, frozen=True):
    """Bytes of a part that count: from ``start`` up to, not including, ``end`` of the draft."""

    part: Part
    start: int
    end: int


def draft_pieces(parts: Iterable[Part], size_bytes: int) -> list[Piece]:
    """What the first bytes of a draft consist of. Raises DraftGone if some are missing."""
    pieces: list[Piece] = []
    end = size_bytes
    # From the latest part backwards, each up to where the one after it begins.
    for part in sorted(parts, reverse=True):
        if part.start < end <= part.end:
            pieces.append(Piece(part, part.start, end))
            end = part.start
    if end > 0:
        raise DraftGone
    return pieces[::-1]


class UploadParts:
    """The drafts of one store (:class:`~podstead.storage.blobs.body_store.StoredDrafts`)."""

    def __init__(
        self, objects: Objects, records: RecordStore, new_file: Callable[[], ReceivedFile]
    ) -> None:
        self._objects = objects
        self._locks = DraftLocks(records)
        self._new_file = new_file

    async def create(self, name: str) -> None:
        """A draft without parts is empty, and nothing has to be stored for it."""

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[LockedParts]:
        """Lock a draft. Raises DraftGone, Overloaded if it stays locked, and StorageError."""
        async with self._locks.hold(name) as lock:
            file = self._new_file()
            try:
                yield LockedParts(name, self._objects, lock, file)
            finally:
                file.close()

    def body_of(self, name: str, size_bytes: int) -> DraftBytes:
        """The first bytes of a draft."""
        return DraftBytes(self._objects, name, size_bytes)

    async def read(self, name: str, size_bytes: int) -> bytes:
        body = self.body_of(name, size_bytes)
        return b"".join([chunk async for chunk in body.chunks()])

    async def remove(self, name: str) -> None:
        await self._objects.remove([each.key for each in await self._objects.list(_prefix(name))])

    async def list(self, *, before_ms: int) -> list[str]:
        changed_ms: dict[str, int] = {}
        for each in await self._objects.list(UPLOADS):
            name = each.key.split("/")[1]
            changed_ms[name] = max(changed_ms.get(name, 0), each.modified_ms)
        return [name for name, last_ms in changed_ms.items() if last_ms < before_ms]


class LockedParts:
    """A draft whose lock is held (:class:`podstead.storage.protocol.HeldDraft`)."""

    def __init__(self, name: str, objects: Objects, lock: DraftLock, file: ReceivedFile) -> None:
        self._name = name
        self._objects = objects
        self._lock = lock
        self._file = file
        self._is_receiving = False
        self._epoch = 0
        self._stored_bytes = 0

    def open(self, size_bytes: int) -> DraftBytes:
        return DraftBytes(self._objects, self._name, size_bytes)

    async def truncate(self, size_bytes: int) -> None:
        parts = await _list_parts(self._objects, self._name)
        draft_pieces(parts, size_bytes)
        # Greater than those of all requests before, also if the clock of their node is ahead.
        self._epoch = max([time.time_ns() // 1_000_000, *(part.epoch + 1 for part in parts)])
        self._stored_bytes = size_bytes
        if self._is_receiving:
            await self._file.empty()
        beyond = [_key(self._name, part) for part in parts if part.start >= size_bytes]
        await self._objects.remove(beyond)

    async def append(self, piece: bytes) -> None:
        if not self._is_receiving:
            if not self._epoch:
                await self.truncate(0)
            await self._file.create(nameless=True)
            self._is_receiving = True
        await self._file.append(piece)
        if self._file.size_bytes >= PART_BYTES:
            await self.sync()

    async def sync(self) -> None:
        """Store what has been received as a part. Raises StorageError."""
        self._lock.check()
        size_bytes = self._file.size_bytes
        if not size_bytes:
            return
        part = Part(self._epoch, self._stored_bytes, size_bytes)
        await self._file.flush()
        await self._objects.put(_key(self._name, part), self._file.read, size_bytes)
        await self._file.empty()
        self._stored_bytes = part.end

    async def wanted(self) -> None:
        await self._lock.wanted()


class DraftBytes(StreamedBody):
    """The first bytes of a draft (:class:`podstead.storage.open_body.OpenBody`)."""

    def __init__(self, objects: Objects, name: str, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._objects = objects
        self._name = name

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Stream the bytes from ``start`` up to, not including, ``end``. Raises DraftGone,
        StorageError."""
        end = self.size_bytes if end is None else min(end, self.size_bytes)
        parts = await _list_parts(self._objects, self._name)
        for piece in draft_pieces(parts, self.size_bytes):
            first, stop = max(start, piece.start), min(end, piece.end)
            if first < stop:
                key, offset = _key(self._name, piece.part), piece.part.start
                async for chunk in self._objects.read(key, first - offset, stop - offset):
                    yield chunk


async def _list_parts(objects: Objects, name: str) -> list[Part]:
    return [_part(each.key) for each in await objects.list(_prefix(name))]


def _prefix(name: str) -> str:
    return f"{UPLOADS}/{name}"


def _key(name: str, part: Part) -> str:
    return f"{_prefix(name)}/{part.epoch}-{part.start}-{part.size_bytes}"


def _part(key: str) -> Part:
    return Part(*map(int, key.rpartition("/")[2].split("-")))
