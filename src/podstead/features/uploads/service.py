"""Receives a large body over several requests, across broken connections and restarts."""

import asyncio
import hashlib
from typing import Final

from msgspec.structs import replace

from podstead.core.background import cancel_and_wait
from podstead.core.errors import BadRequest, BodyTimeout, ChecksumMismatch, Conflict, PodsteadError
from podstead.core.identifiers import storage_root
from podstead.core.identity import Identity
from podstead.core.operation import RequestBody
from podstead.core.value import Value
from podstead.resources import codes, uploads
from podstead.storage.protocol import UploadDraft
from podstead.storage.record_store import RecordStore, Versioned
from podstead.storage.uploads import FINISHED_UPLOADS, UploadRecord

CHECKPOINT_BYTES: Final = 8 * 1024 * 1024
"""How much may arrive before it is flushed to disk and its offset recorded."""


QUIET_S: Final = 1.0
"""How long a request must receive nothing before another may take over."""


class Checksum(Value):
    """The hash that the content of one request must have; ``algorithm`` is a name of hashlib."""

    algorithm: str
    digest: bytes


class UploadReceiver(uploads.Progress):
    """One request that appends to an upload."""

    def __init__(
        self, stored: Versioned[UploadRecord], draft: UploadDraft, records: RecordStore
    ) -> None:
        super().__init__(stored, draft, records)
        self._arrived_s = _now_s()

    async def receive(self, body: RequestBody, checksum: Checksum | None, *, whole: bool) -> None:
        """Append the body, and flush it to disk. With ``whole``, none of it counts if there is an
        error; otherwise what arrived before the connection broke is recorded."""
        receiving = asyncio.create_task(self._append(body, checksum, whole=whole))
        abandoned = asyncio.create_task(self._abandoned())
        try:
            await asyncio.wait({receiving, abandoned}, return_when=asyncio.FIRST_COMPLETED)
            await cancel_and_wait([receiving])
            if receiving.cancelled():
                raise BadRequest(codes.ResourceCodes.UPLOAD_CONTINUED_ELSEWHERE)
            await receiving
        except (BadRequest, BodyTimeout):
            if not whole:
                await self.checkpoint()
            raise
        finally:
            await cancel_and_wait([receiving, abandoned])

    async def _abandoned(self) -> None:
        """Wait until another request waits for the draft and nothing arrives here any more."""
        await self.draft.wanted()
        while (rest_s := self._arrived_s + QUIET_S - _now_s()) > 0:  # noqa: ASYNC110 - a time-out
            await asyncio.sleep(rest_s)

    async def _append(self, body: RequestBody, checksum: Checksum | None, *, whole: bool) -> None:
        record = self.stored.value
        hashed = None if checksum is None else hashlib.new(checksum.algorithm)
        unrecorded_bytes = 0
        async for piece in body.chunks(limit_bytes=record.size_bytes - record.offset_bytes):
            await self.draft.append(piece)
            self.arrived_bytes += len(piece)
            self._arrived_s = _now_s()
            unrecorded_bytes += len(piece)
            if hashed is not None:
                hashed.update(piece)
            if not whole and unrecorded_bytes >= CHECKPOINT_BYTES:
                await self.checkpoint()
                unrecorded_bytes = 0
        if checksum is not None and hashed is not None and hashed.digest() != checksum.digest:
            raise ChecksumMismatch(codes.ResourceCodes.CHECKSUM_DIFFERS)
        await self.draft.sync()


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class ResumableUploads(uploads.UploadService):
    """The resumable uploads of one worker."""

    async def create(
        self, record: UploadRecord, agent: Identity | None, origin: str | None
    ) -> uploads.UploadState:
        """Begin an upload. An empty one is finished at once. Raises what :meth:`begin` and a PUT
        raise."""
        begun = await self.begin(record, agent, origin)
        if record.size_bytes:
            return begun
        try:
            return await self.append(begun.upload, 0, uploads.AnnouncedBody(0), agent, origin)
        except PodsteadError:
            await self.cancel(begun.upload, agent)
            raise

    async def store(
        self, record: UploadRecord, body: RequestBody, agent: Identity | None, origin: str | None
    ) -> uploads.UploadState:
        """An upload that is complete with its first request needs no draft. Raises what
        :meth:`create` and a PUT raise."""
        iri = None if agent is None else agent.iri
        record = replace(record, agent=iri, offset_bytes=record.size_bytes, description=None)
        uploads.check_target(record)
        upload = self.new_name(agent)
        expires_ms = self.records.now_ms() + uploads.FINISHED_LIFETIME_MS
        request = uploads.put_request(record, body, agent, origin)
        request.records = (
            FINISHED_UPLOADS.put(
                uploads.upload_key(upload),
                record,
                owner=storage_root(record.target),
                expires_ms=expires_ms,
            ),
        )
        outcome = await self.resources.handle(request)
        return uploads.UploadState(upload, record, expires_ms, outcome)

    async def inspect(self, upload: str, agent: Identity | None) -> uploads.UploadState:
        """The progress of an upload. Ends a request that is still sending to it. Raises
        NotFound."""
        async with self.held(upload, agent) as (stored, _):
            return uploads.UploadState(upload, stored.value, stored.expires_ms)

    async def append(
        self,
        upload: str,
        offset_bytes: int,
        body: RequestBody,
        agent: Identity | None,
        origin: str | None,
        *,
        checksum: Checksum | None = None,
    ) -> uploads.UploadState:
        """Receive the next bytes, and carry out the PUT once all have arrived.

        What arrived before the connection broke is kept, unless there is a checksum or a signature
        for the whole. Raises NotFound, Conflict if ``offset_bytes`` is not the upload's,
        ChecksumMismatch, the errors of bodies, and those of a PUT.
        """
        async with self.held(upload, agent) as (stored, draft):
            if offset_bytes != stored.value.offset_bytes:
                raise Conflict(
                    f"The upload continues at {stored.value.offset_bytes}, not {offset_bytes}"
                )
            if draft is None:  # finished before
                return uploads.UploadState(upload, stored.value, stored.expires_ms)
            progress = UploadReceiver(stored, draft, self.records)
            await draft.truncate(offset_bytes)
            whole = checksum is not None or bool(agent and agent.content_digest)
            await progress.receive(body, checksum, whole=whole)
            if progress.arrived_bytes == stored.value.size_bytes:
                return await self.finish(upload, progress, draft, agent, origin)
            await progress.checkpoint()
            return uploads.UploadState(upload, progress.stored.value, progress.stored.expires_ms)
