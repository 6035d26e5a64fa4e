"""The drafts of resumable uploads: parts that any node can continue.

``uploads/<name>/<epoch>-<start>-<size>`` is a part of a draft, stored once and never changed. Each
request that continues a draft has a greater epoch than those before. A part counts up to where a
part of a later epoch begins, so a request that has lost the draft cannot change what follows.

Which drafts are in use, and how much of each counts, is recorded elsewhere. Parts beyond that are
removed by ``truncate``.

The lock of a draft is a record that expires, renewed by the request that has it. A request that
takes it writes the record of the upload anew in the same transaction: if the lock of another has
expired meanwhile, because its node was slow or its clock is wrong, that one cannot record anything
for the upload any more. A request that waits says so in another record, which the one with the lock
looks for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

import msgspec

from podstead.core.errors import Overloaded, StorageError
from podstead.storage.blobs.body_store import UPLOADS as UPLOADS_FOLDER
from podstead.storage.blobs.files import ReceivedFile
from podstead.storage.blobs.s3.objects import PART_BYTES, Objects
from podstead.storage.open_body import StreamedBody
from podstead.storage.record_store import RecordKind, RecordStore, Versioned
from podstead.storage.uploads import UPLOADS, DraftGone

logger = logging.getLogger("podstead.storage")

LOCK_WAIT_S: Final = 10.0
"""How long a request waits for another one that uses the same draft."""

LASTS_MS: Final = 20_000
"""How long a lock lasts without being renewed: so long a draft is locked after a node died."""

_RENEWAL_S: Final = 5.0
_RETRY_S: Final = 0.25
_WANTED_PERIOD_S: Final = 0.5
_WANTED_MS: Final = 3_000
_HOLDER_BYTES: Final = 8
_TAKEN: Final = "Another request is using this upload; try again"


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock, or waits for one."""

    holder: str


LOCKS: Final = RecordKind("upload-lock", Holder)
WANTED: Final = RecordKind("upload-wanted", Holder)


class DraftLocks:
    """The locks as one worker takes them."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[DraftLock]:
        """Hold the lock of a draft. Raises DraftGone if there is no such upload, Overloaded if it
        stays locked, StorageError."""
        lock = DraftLock(name, self._records)
        try:
            await lock.take()
            renewing = asyncio.create_task(lock.renew())
            try:
                yield lock
            finally:
                renewing.cancel()
        finally:
            await lock.release()


class DraftLock:
    """A lock that one request holds."""

    def __init__(self, name: str, records: RecordStore) -> None:
        self._name = name
        self._records = records
        self._holder = Holder(records.randomness.token_hex(_HOLDER_BYTES))
        self._until_ms = 0
        self._may_be_held = False

    async def take(self) -> None:
        """Wait for the lock."""
        end_s = monotonic() + LOCK_WAIT_S
        while not await self._try():
            if monotonic() >= end_s:
                raise Overloaded(_TAKEN)
            await asyncio.sleep(_RETRY_S)

    async def _try(self) -> bool:
        upload = await self._records.read(UPLOADS, self._name)
        if upload is None:
            raise DraftGone
        until_ms = self._records.now_ms() + LASTS_MS
        self._may_be_held = True
        taken = await self._records.try_commit(
            [
                LOCKS.put(self._name, self._holder, expires_ms=until_ms),
                WANTED.drop(self._name),
                UPLOADS.replace(upload, upload.value),
            ],
            [LOCKS.absent(self._name), upload.unchanged],
        )
        if taken:
            self._until_ms = until_ms
            return True
        self._may_be_held = False
        wanted_ms = self._records.now_ms() + _WANTED_MS
        await self._records.try_commit([WANTED.put(self._name, self._holder, expires_ms=wanted_ms)])
        return False

    async def renew(self) -> None:
        """Renew the lock until it is lost."""
        while True:
            await asyncio.sleep(_RENEWAL_S)
            try:
                held = await self._held()
                until_ms = self._records.now_ms() + LASTS_MS
                if held is None or not await self._records.try_commit(
                    [LOCKS.put(self._name, self._holder, expires_ms=until_ms)], [held.unchanged]
                ):
                    self._until_ms = 0
                    return
                self._until_ms = until_ms
            except (StorageError, Overloaded):
                logger.warning("The lock of an upload could not be renewed", exc_info=True)

    def check(self) -> None:
        """Raise Overloaded if the lock has been lost."""
        if self._records.now_ms() >= self._until_ms:
            raise Overloaded(_TAKEN)

    async def wanted(self) -> None:
        """Wait until another request waits for the lock."""
        while True:
            await asyncio.sleep(_WANTED_PERIOD_S)
            try:
                if await self._records.read(WANTED, self._name) is not None:
                    return
            except (StorageError, Overloaded):
                logger.debug("Whether an upload is wanted could not be read", exc_info=True)

    async def release(self) -> None:
        """Let the next request have the lock. If that fails, the lock expires."""
        if not self._may_be_held:
            return
        try:
            held = await self._held()
            if held is not None:
                await self._records.try_commit([LOCKS.drop(self._name)], [held.unchanged])
        except (StorageError, Overloaded):
            logger.warning("The lock of an upload could not be released", exc_info=True)

    async def _held(self) -> Versioned[Holder] | None:
        held = await self._records.read(LOCKS, self._name)
        return held if held is not None and held.value == self._holder else None


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
        for each in await self._objects.list(UPLOADS_FOLDER):
            name = each.key.split("/")[1]
            changed_ms[name] = max(changed_ms.get(name, 0), each.modified_ms)
        return [name for name, last_ms in changed_ms.items() if last_ms < before_ms]


class LockedParts:
    """A draft whose lock is held (:class:`podstead.storage.protocol.UploadDraft`)."""

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
    return f"{UPLOADS_FOLDER}/{name}"


def _key(name: str, part: Part) -> str:
    return f"{_prefix(name)}/{part.epoch}-{part.start}-{part.size_bytes}"


def _part(key: str) -> Part:
    return Part(*map(int, key.rpartition("/")[2].split("-")))
