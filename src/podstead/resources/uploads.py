"""Receives a large body over several requests, across broken connections and restarts.

An upload in progress is a record (``storage/uploads.py``) and a draft, a file that grows. It is
authorized like the resulting PUT when it is created, so that nobody sends in vain, and again when
all of it has arrived: then :class:`ResourceService` carries out that PUT.

A client may rely on the offset that it receives: that much is on disk. The last byte is
acknowledged only together with the resource. If the PUT is refused at the end, or the server stops,
the client finds one byte missing, and by sending it tries the PUT again.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import msgspec
from msgspec import structs
from msgspec.structs import replace

from podstead.core.conditional import Conditions
from podstead.core.errors import (
    Conflict,
    NotFound,
    PodsteadError,
    RateLimited,
    StorageError,
)
from podstead.core.identifiers import ResourcePath, auxiliary_kind, is_container, storage_root
from podstead.core.identity import Identity
from podstead.core.operation import Operation, RequestBody
from podstead.core.request_context import requester
from podstead.resources.codes import ResourceCodes
from podstead.resources.content import UploadedOperation
from podstead.resources.outcome import Outcome, ResourceRequest
from podstead.resources.service import ResourceService
from podstead.resources.upload_progress import (
    LIFETIME_MS,
    AnnouncedBody,
    Checksum,
    DraftBody,
    Progress,
)
from podstead.storage.capacity import StorageCapacity
from podstead.storage.protocol import UploadDraft
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.storage.uploads import FINISHED_UPLOADS, UPLOADS, DraftGone, UploadRecord

logger = logging.getLogger("podstead.resources")

FINISHED_LIFETIME_MS: Final = 60 * 60 * 1000
"""How long a finished upload is known."""

MAX_OF_AGENT: Final = 200
"""The uploads that one agent may have in progress; for the public, those of one network."""

MAX_IN_ALL: Final = 10_000
RESERVED: Final = 5_000
"""The last of all places for uploads, of which an agent gets at most :data:`MAX_OF_RESERVED`."""
MAX_OF_RESERVED: Final = 10

_AGENT_CHARS: Final = 16
_RANDOM_BYTES: Final = 16
_NAME: Final = re.compile(r"[0-9a-f]{48}")


class UploadState(msgspec.Struct, frozen=True):
    """The progress of an upload. ``outcome`` is that of the PUT, if this request finished it."""

    upload: str
    record: UploadRecord
    expires_ms: int | None
    outcome: Outcome | None = None


class UploadService:
    """The resumable uploads of one worker."""

    def __init__(
        self,
        *,
        resources: ResourceService,
        records: RecordStore,
        capacity: StorageCapacity,
        max_body_bytes: int,
    ) -> None:
        self._resources = resources
        self._records = records
        self._drafts = records.store
        self._capacity = capacity
        self._max_body_bytes = max_body_bytes

    async def create(
        self, record: UploadRecord, agent: Identity | None, origin: str | None
    ) -> UploadState:
        """Begin an upload. An empty one is finished at once.

        Raises what a PUT raises before it receives its body, RateLimited if the agent has too many
        uploads in progress, and Conflict for a target that is no ordinary document.
        """
        record = replace(record, agent=None if agent is None else agent.iri, offset_bytes=0)
        _check_target(record)
        own = await self._own(agent)
        request = _put(record, AnnouncedBody(record.size_bytes), agent, origin)
        root = storage_root(record.target)
        in_storage = [each for each in own if each.owner == root]
        await self._resources.check_put(
            request, extra_bytes=sum(each.value.size_bytes for each in in_storage)
        )
        await self._capacity.check_share(
            record.size_bytes + sum(each.value.size_bytes - each.value.offset_bytes for each in own)
        )
        await self._check_number(len(own))
        upload = self._new_name(agent)
        key = _key(upload)
        expires_ms = self._records.now_ms() + LIFETIME_MS
        put = UPLOADS.put(key, record, owner=root, expires_ms=expires_ms)
        # First the record, without which a sweep removes a draft.
        await self._records.commit([put], [UPLOADS.absent(key)])
        try:
            await self._drafts.uploads.create(key)
        except BaseException:
            await self._records.commit([UPLOADS.drop(key)])
            raise
        if record.size_bytes:
            return UploadState(upload, record, expires_ms)
        try:
            return await self.append(upload, 0, AnnouncedBody(0), agent, origin)
        except PodsteadError:
            await self.cancel(upload, agent)
            raise

    async def store(
        self, record: UploadRecord, body: RequestBody, agent: Identity | None, origin: str | None
    ) -> UploadState:
        """An upload that is complete with its first request needs no draft. Raises what
        :meth:`create` and a PUT raise."""
        iri = None if agent is None else agent.iri
        record = replace(record, agent=iri, offset_bytes=record.size_bytes, description=None)
        _check_target(record)
        upload = self._new_name(agent)
        expires_ms = self._records.now_ms() + FINISHED_LIFETIME_MS
        request = _put(record, body, agent, origin)
        request.records = (
            FINISHED_UPLOADS.put(
                _key(upload), record, owner=storage_root(record.target), expires_ms=expires_ms
            ),
        )
        outcome = await self._resources.handle(request)
        return UploadState(upload, record, expires_ms, outcome)

    def _new_name(self, agent: Identity | None) -> str:
        return _agent_key(agent) + self._records.randomness.token_hex(_RANDOM_BYTES)

    async def inspect(self, upload: str, agent: Identity | None) -> UploadState:
        """The progress of an upload. Ends a request that is still sending to it. Raises
        NotFound."""
        async with self._held(upload, agent) as (stored, _):
            return UploadState(upload, stored.value, stored.expires_ms)

    async def append(
        self,
        upload: str,
        offset_bytes: int,
        body: RequestBody,
        agent: Identity | None,
        origin: str | None,
        *,
        checksum: Checksum | None = None,
    ) -> UploadState:
        """Receive the next bytes, and carry out the PUT once all have arrived.

        What arrived before the connection broke is kept, unless there is a checksum or a signature
        for the whole. Raises NotFound, Conflict if ``offset_bytes`` is not the upload's,
        ChecksumMismatch, the errors of bodies, and those of a PUT.
        """
        async with self._held(upload, agent) as (stored, draft):
            if offset_bytes != stored.value.offset_bytes:
                raise Conflict(
                    f"The upload continues at {stored.value.offset_bytes}, not {offset_bytes}"
                )
            if draft is None:  # finished before
                return UploadState(upload, stored.value, stored.expires_ms)
            progress = Progress(stored, draft, self._records)
            await draft.truncate(offset_bytes)
            whole = checksum is not None or bool(agent and agent.content_digest)
            await progress.receive(body, checksum, whole=whole)
            if progress.arrived_bytes == stored.value.size_bytes:
                return await self._finish(upload, progress, draft, agent, origin)
            await progress.checkpoint()
            return UploadState(upload, progress.stored.value, progress.stored.expires_ms)

    async def hold(
        self, record: UploadRecord, body: RequestBody, agent: Identity | None
    ) -> UploadState:
        """Receive a body of any length at once, and leave its target open until :meth:`place`.
        Raises what :meth:`create` and the body raise."""
        begun = await self.create(replace(record, size_bytes=1), agent, None)
        try:
            async with self._held(begun.upload, agent) as (stored, draft):
                if draft is None:
                    raise NotFound(ResourceCodes.NO_SUCH_UPLOAD)
                # What the agent holds already is not part of the storage's use yet.
                root = storage_root(record.target)
                held_bytes = sum(
                    each.value.size_bytes
                    for each in await self._own(agent)
                    if each.owner == root and each.key != stored.key
                )
                bounded = await self._capacity.limit_body(body, root, extra_bytes=held_bytes)
                size_bytes = 0
                async for piece in bounded.chunks(limit_bytes=self._max_body_bytes):
                    await draft.append(piece)
                    size_bytes += len(piece)
                await draft.sync()
                whole = replace(
                    stored.value, size_bytes=size_bytes, offset_bytes=max(0, size_bytes - 1)
                )
                await self._records.commit([UPLOADS.replace(stored, whole)], [stored.unchanged])
                return UploadState(begun.upload, whole, stored.expires_ms)
        except BaseException:
            await self.cancel(begun.upload, agent)
            raise

    async def place(
        self, upload: str, agent: Identity | None, target: ResourcePath, conditions: Conditions
    ) -> None:
        """Carry out the PUT of a complete upload at another target.

        Raises NotFound, and the errors of a PUT.
        """
        async with self._held(upload, agent) as (stored, draft):
            if draft is None:
                if stored.value.target != target:
                    raise Conflict(ResourceCodes.UPLOAD_FINISHED)
                return
            await draft.truncate(stored.value.size_bytes)
            record = replace(
                stored.value,
                target=target,
                if_match=conditions.if_match,
                if_none_match=conditions.if_none_match,
            )
            progress = Progress(dataclasses.replace(stored, value=record), draft, self._records)
            progress.arrived_bytes = record.size_bytes
            await self._finish(upload, progress, draft, agent, None)

    async def cancel(self, upload: str, agent: Identity | None) -> None:
        """Give an upload up. Raises NotFound."""
        async with self._held(upload, agent) as (stored, _):
            await self._records.commit(
                [UPLOADS.drop(stored.key), FINISHED_UPLOADS.drop(stored.key)]
            )
            await self._drafts.uploads.remove(stored.key)

    async def _finish(
        self,
        upload: str,
        progress: Progress,
        draft: UploadDraft,
        agent: Identity | None,
        origin: str | None,
    ) -> UploadState:
        stored = progress.stored
        record = replace(stored.value, offset_bytes=stored.value.size_bytes, description=None)
        expires_ms = self._records.now_ms() + FINISHED_LIFETIME_MS
        request = _put(
            record, DraftBody(draft.open(record.size_bytes)), agent, origin, draft=stored.key
        )
        request.records = (
            UPLOADS.drop(stored.key),
            FINISHED_UPLOADS.put(stored.key, record, owner=stored.owner, expires_ms=expires_ms),
        )
        try:
            outcome = await self._resources.handle(request)
        except PodsteadError:
            await progress.checkpoint()
            raise
        try:
            await self._drafts.uploads.remove(stored.key)
        except StorageError:  # the resource is stored; the next sweep removes the draft
            logger.exception("The draft of a finished upload could not be removed")
        return UploadState(upload, record, expires_ms, outcome)

    @asynccontextmanager
    async def _held(
        self, upload: str, agent: Identity | None
    ) -> AsyncIterator[tuple[Versioned[UploadRecord], UploadDraft | None]]:
        """The record and the draft, which no other request uses meanwhile; a finished upload has
        no draft. Raises NotFound."""
        key = _key(upload)
        await self._find(key, agent)
        async with AsyncExitStack() as stack:
            draft = None
            with suppress(DraftGone):
                draft = await stack.enter_async_context(self._drafts.uploads.hold(key))
            stored = await self._find(key, agent)  # it may have changed while we waited
            try:
                if _is_in_progress(stored):
                    if draft is None:
                        raise DraftGone
                    yield stored, draft
                else:
                    yield stored, None
            except DraftGone as error:
                # The data root was restored from a backup that has the record only.
                logger.warning("The draft of an upload is missing; the upload is forgotten")
                await self._records.commit([UPLOADS.drop(key)])
                raise NotFound(ResourceCodes.NO_SUCH_UPLOAD) from error

    async def _find(self, key: str, agent: Identity | None) -> Versioned[UploadRecord]:
        for kind in (UPLOADS, FINISHED_UPLOADS):
            stored = await self._records.read(kind, key)
            if stored is not None and stored.value.agent == (None if agent is None else agent.iri):
                return stored
        raise NotFound(ResourceCodes.NO_SUCH_UPLOAD)

    async def _own(self, agent: Identity | None) -> list[Versioned[UploadRecord]]:
        """The uploads that an agent has in progress."""
        prefix = _agent_key(agent)
        found = await UPLOADS.page(
            self._records.store, after=prefix, now_ms=self._records.now_ms(), limit=MAX_OF_AGENT
        )
        return [each for each in found if each.key.startswith(prefix)]

    async def _check_number(self, own: int) -> None:
        limit = MAX_OF_AGENT
        in_all = await UPLOADS.count(self._records.store, at_most=MAX_IN_ALL)
        if in_all >= MAX_IN_ALL - RESERVED:
            limit = 0 if in_all >= MAX_IN_ALL else MAX_OF_RESERVED
        if own >= limit:
            raise RateLimited(ResourceCodes.TOO_MANY_UPLOADS, retry_after_s=60)


def _check_target(record: UploadRecord) -> None:
    """Raise Conflict for a target that is no ordinary document."""
    # Access rules and descriptions are small, and a file that happens to have such a name must not
    # become one.
    if is_container(record.target) or auxiliary_kind(record.target) is not None:
        raise Conflict("Only documents can be uploaded in parts; use PUT")


def _put(
    record: UploadRecord,
    body: RequestBody,
    agent: Identity | None,
    origin: str | None,
    *,
    draft: str | None = None,
) -> ResourceRequest:
    operation = Operation(
        method="PUT",
        target=record.target,
        body=body,
        conditions=record.conditions,
        content_type=record.content_type,
        origin=origin,
    )
    if draft is not None:
        operation = UploadedOperation(**structs.asdict(operation), draft=draft)
    return ResourceRequest(operation, agent)


def _is_in_progress(stored: Versioned[UploadRecord]) -> bool:
    return stored.entry == UPLOADS.entry_of(stored.key)


def _agent_key(agent: Identity | None) -> str:
    """The prefix of the names of an agent's uploads."""
    name = f"public {requester()}" if agent is None else agent.iri
    return secret_key(name)[:_AGENT_CHARS]


def _key(upload: str) -> str:
    """The key of an upload's records and the name of its draft. Raises NotFound for a name that
    no upload can have."""
    if _NAME.fullmatch(upload) is None:
        raise NotFound(ResourceCodes.NO_SUCH_UPLOAD)
    # For the public, the name is a secret.
    return upload[:_AGENT_CHARS] + secret_key(upload)[: 2 * _RANDOM_BYTES]
