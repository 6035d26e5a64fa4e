"""Appends the body of one request to the draft of an upload."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from podstead.core.codes import CoreCodes
from podstead.core.errors import (
    BadRequest,
    BodyTimeout,
    BodyTooLarge,
    ChecksumMismatch,
    NotFound,
    Overloaded,
)
from podstead.core.operation import RequestBody
from podstead.core.value import Value
from podstead.resources.codes import ResourceCodes
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import UploadDraft
from podstead.storage.record_store import Contention, RecordStore, Versioned
from podstead.storage.uploads import UPLOADS, UploadRecord

LIFETIME_MS: Final = 24 * 60 * 60 * 1000
"""How long an upload is kept after the last bytes arrived."""

CHECKPOINT_BYTES: Final = 8 * 1024 * 1024
"""How much may arrive before it is flushed to disk and its offset recorded."""


QUIET_S: Final = 1.0
"""How long a request must receive nothing before another may take over."""


class Checksum(Value):
    """The hash that the content of one request must have; ``algorithm`` is a name of hashlib."""

    algorithm: str
    digest: bytes


class Progress:
    """One request that appends to an upload."""

    def __init__(
        self, stored: Versioned[UploadRecord], draft: UploadDraft, records: RecordStore
    ) -> None:
        self.stored = stored
        self.arrived_bytes = stored.value.offset_bytes
        self._draft = draft
        self._records = records
        self._arrived_s = _now_s()

    async def receive(self, body: RequestBody, checksum: Checksum | None, *, whole: bool) -> None:
        """Append the body, and flush it to disk. With ``whole``, none of it counts if there is an
        error; otherwise what arrived before the connection broke is recorded."""
        receiving = asyncio.create_task(self._append(body, checksum, whole=whole))
        abandoned = asyncio.create_task(self._abandoned())
        try:
            await asyncio.wait({receiving, abandoned}, return_when=asyncio.FIRST_COMPLETED)
            if receiving.done():
                await receiving
                return
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving
                return
            raise BadRequest(ResourceCodes.UPLOAD_CONTINUED_ELSEWHERE)
        except (BadRequest, BodyTimeout):
            if not whole:
                await self.checkpoint()
            raise
        finally:
            for task in (receiving, abandoned):
                task.cancel()
            await asyncio.gather(receiving, abandoned, return_exceptions=True)

    async def _abandoned(self) -> None:
        """Wait until another request waits for the draft and nothing arrives here any more."""
        await self._draft.wanted()
        while (rest_s := self._arrived_s + QUIET_S - _now_s()) > 0:  # noqa: ASYNC110 - a time-out
            await asyncio.sleep(rest_s)

    async def checkpoint(self) -> None:
        """Flush everything to disk and record the offset. Raises NotFound if the upload has been
        given up, Overloaded if another request has taken it over."""
        await self._draft.sync()
        stored = self.stored
        # The last byte is acknowledged together with the resource.
        offset_bytes = max(0, min(self.arrived_bytes, stored.value.size_bytes - 1))
        put = UPLOADS.put(
            stored.key,
            replace(stored.value, offset_bytes=offset_bytes),
            owner=stored.owner,
            expires_ms=self._records.now_ms() + LIFETIME_MS,
        )
        try:
            await self._records.commit([put], [stored.unchanged])
        except Contention as error:
            if await self._records.read(UPLOADS, stored.key) is None:
                raise NotFound(ResourceCodes.NO_SUCH_UPLOAD) from error
            raise Overloaded("Another request continues this upload; try again") from error
        changed = await self._records.read(UPLOADS, stored.key)
        if changed is None:
            raise NotFound(ResourceCodes.NO_SUCH_UPLOAD)
        self.stored = changed

    async def _append(self, body: RequestBody, checksum: Checksum | None, *, whole: bool) -> None:
        record = self.stored.value
        hashed = None if checksum is None else hashlib.new(checksum.algorithm)
        unrecorded_bytes = 0
        async for piece in body.chunks(limit_bytes=record.size_bytes - record.offset_bytes):
            await self._draft.append(piece)
            self.arrived_bytes += len(piece)
            self._arrived_s = _now_s()
            unrecorded_bytes += len(piece)
            if hashed is not None:
                hashed.update(piece)
            if not whole and unrecorded_bytes >= CHECKPOINT_BYTES:
                await self.checkpoint()
                unrecorded_bytes = 0
        if checksum is not None and hashed is not None and hashed.digest() != checksum.digest:
            raise ChecksumMismatch(ResourceCodes.CHECKSUM_DIFFERS)
        await self._draft.sync()


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class AnnouncedBody:
    """A body with only its length known (:class:`podstead.core.operation.RequestBody`)."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.announced = size_bytes > 0

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        if limit_bytes < self.size_bytes:
            yield b""

    async def read(self, *, limit_bytes: int) -> bytes:
        return b"".join([chunk async for chunk in self.chunks(limit_bytes=limit_bytes)])


class DraftBody(AnnouncedBody):
    """The body of an upload that has arrived completely."""

    def __init__(self, content: OpenBody) -> None:
        super().__init__(content.size_bytes)
        self._content = content

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        if self.size_bytes > limit_bytes:
            raise BodyTooLarge(CoreCodes.TOO_LARGE, limit_bytes=limit_bytes)
        async for chunk in self._content.chunks():
            yield chunk
