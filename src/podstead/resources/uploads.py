"""Receives bodies that become resources with a later request.

An upload is a record (``storage/uploads.py``) and a draft, a file that grows. It is authorized like
the resulting PUT when it begins, so that nobody sends in vain, and again when it ends: then
:class:`ResourceService` carries out that PUT. The pages hold a file whose name is taken until the
person has chosen another one.

A client may rely on the offset that it receives: that much is on disk. The last byte is
acknowledged only together with the resource. If the PUT is refused at the end, or the server stops,
the client finds one byte missing, and by sending it tries the PUT again.
"""

import dataclasses
import logging
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import structs
from msgspec.structs import replace

from podstead.core import errors
from podstead.core.codes import CoreCodes
from podstead.core.conditional import Conditions
from podstead.core.identifiers import ResourcePath, auxiliary_kind, is_container, storage_root
from podstead.core.identity import Identity
from podstead.core.operation import Operation, RequestBody
from podstead.core.request_context import requester
from podstead.resources.codes import ResourceCodes
from podstead.resources.content import UploadedOperation
from podstead.resources.outcome import Outcome, ResourceRequest
from podstead.resources.service import ResourceService
from podstead.storage.capacity import StorageCapacity
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import UploadDraft
from podstead.storage.record_store import Contention, RecordStore, Versioned, secret_key
from podstead.storage.uploads import FINISHED_UPLOADS, UPLOADS, DraftGone, UploadRecord

logger = logging.getLogger("podstead.resources")

LIFETIME_MS: Final = 24 * 60 * 60 * 1000
"""How long an upload is kept after the last bytes arrived."""

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


class Progress:
    """The progress of an upload in one request."""

    def __init__(
        self, stored: Versioned[UploadRecord], draft: UploadDraft, records: RecordStore
    ) -> None:
        self.stored = stored
        self.arrived_bytes = stored.value.offset_bytes
        self.draft = draft
        self.records = records

    async def checkpoint(self) -> None:
        """Flush everything to disk and record the offset. Raises NotFound if the upload has been
        given up, Overloaded if another request has taken it over."""
        await self.draft.sync()
        stored = self.stored
        # The last byte is acknowledged together with the resource.
        offset_bytes = max(0, min(self.arrived_bytes, stored.value.size_bytes - 1))
        put = UPLOADS.put(
            stored.key,
            replace(stored.value, offset_bytes=offset_bytes),
            owner=stored.owner,
            expires_ms=self.records.now_ms() + LIFETIME_MS,
        )
        try:
            await self.records.commit([put], [stored.unchanged])
        except Contention as error:
            if await self.records.read(UPLOADS, stored.key) is None:
                raise errors.NotFound(ResourceCodes.NO_SUCH_UPLOAD) from error
            raise errors.Overloaded("Another request continues this upload; try again") from error
        changed = await self.records.read(UPLOADS, stored.key)
        if changed is None:
            raise errors.NotFound(ResourceCodes.NO_SUCH_UPLOAD)
        self.stored = changed


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
            raise errors.BodyTooLarge(CoreCodes.TOO_LARGE, limit_bytes=limit_bytes)
        async for chunk in self._content.chunks():
            yield chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadService:
    """The uploads of one worker."""

    resources: ResourceService
    records: RecordStore
    capacity: StorageCapacity
    max_body_bytes: int

    async def begin(
        self, record: UploadRecord, agent: Identity | None, origin: str | None
    ) -> UploadState:
        """Begin an upload, which has no bytes yet.

        Raises what a PUT raises before it receives its body, RateLimited if the agent has too many
        uploads in progress, and Conflict for a target that is no ordinary document.
        """
        record = replace(record, agent=None if agent is None else agent.iri, offset_bytes=0)
        check_target(record)
        own = await self._own(agent)
        request = put_request(record, AnnouncedBody(record.size_bytes), agent, origin)
        root = storage_root(record.target)
        in_storage = [each for each in own if each.owner == root]
        await self.resources.check_put(
            request, extra_bytes=sum(each.value.size_bytes for each in in_storage)
        )
        await self.capacity.check_share(
            record.size_bytes + sum(each.value.size_bytes - each.value.offset_bytes for each in own)
        )
        await self._check_number(len(own))
        upload = self.new_name(agent)
        key = upload_key(upload)
        expires_ms = self.records.now_ms() + LIFETIME_MS
        put = UPLOADS.put(key, record, owner=root, expires_ms=expires_ms)
        # First the record, without which a sweep removes a draft.
        await self.records.commit([put], [UPLOADS.absent(key)])
        try:
            await self.records.store.uploads.create(key)
        except BaseException:
            await self.records.commit([UPLOADS.drop(key)])
            raise
        return UploadState(upload, record, expires_ms)

    def new_name(self, agent: Identity | None) -> str:
        return _agent_key(agent) + self.records.randomness.token_hex(_RANDOM_BYTES)

    async def hold(
        self, record: UploadRecord, body: RequestBody, agent: Identity | None
    ) -> UploadState:
        """Receive a body of any length at once, and leave its target open until :meth:`place`.
        Raises what :meth:`begin` and the body raise."""
        begun = await self.begin(replace(record, size_bytes=1), agent, None)
        try:
            async with self.held(begun.upload, agent) as (stored, draft):
                if draft is None:
                    raise errors.NotFound(ResourceCodes.NO_SUCH_UPLOAD)
                # What the agent holds already is not part of the storage's use yet.
                root = storage_root(record.target)
                held_bytes = sum(
                    each.value.size_bytes
                    for each in await self._own(agent)
                    if each.owner == root and each.key != stored.key
                )
                bounded = await self.capacity.limit_body(body, root, extra_bytes=held_bytes)
                size_bytes = 0
                async for piece in bounded.chunks(limit_bytes=self.max_body_bytes):
                    await draft.append(piece)
                    size_bytes += len(piece)
                await draft.sync()
                whole = replace(
                    stored.value, size_bytes=size_bytes, offset_bytes=max(0, size_bytes - 1)
                )
                await self.records.commit([UPLOADS.replace(stored, whole)], [stored.unchanged])
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
        async with self.held(upload, agent) as (stored, draft):
            if draft is None:
                if stored.value.target != target:
                    raise errors.Conflict(ResourceCodes.UPLOAD_FINISHED)
                return
            await draft.truncate(stored.value.size_bytes)
            record = replace(
                stored.value,
                target=target,
                if_match=conditions.if_match,
                if_none_match=conditions.if_none_match,
            )
            progress = Progress(dataclasses.replace(stored, value=record), draft, self.records)
            progress.arrived_bytes = record.size_bytes
            await self.finish(upload, progress, draft, agent, None)

    async def cancel(self, upload: str, agent: Identity | None) -> None:
        """Give an upload up. Raises NotFound."""
        async with self.held(upload, agent) as (stored, _):
            await self.records.commit([UPLOADS.drop(stored.key), FINISHED_UPLOADS.drop(stored.key)])
            await self.records.store.uploads.remove(stored.key)

    async def finish(
        self,
        upload: str,
        progress: Progress,
        draft: UploadDraft,
        agent: Identity | None,
        origin: str | None,
    ) -> UploadState:
        stored = progress.stored
        record = replace(stored.value, offset_bytes=stored.value.size_bytes, description=None)
        expires_ms = self.records.now_ms() + FINISHED_LIFETIME_MS
        request = put_request(
            record, DraftBody(draft.open(record.size_bytes)), agent, origin, draft=stored.key
        )
        request.records = (
            UPLOADS.drop(stored.key),
            FINISHED_UPLOADS.put(stored.key, record, owner=stored.owner, expires_ms=expires_ms),
        )
        try:
            outcome = await self.resources.handle(request)
        except errors.PodsteadError:
            await progress.checkpoint()
            raise
        try:
            await self.records.store.uploads.remove(stored.key)
        except errors.StorageError:  # the resource is stored; the next sweep removes the draft
            logger.exception("The draft of a finished upload could not be removed")
        return UploadState(upload, record, expires_ms, outcome)

    @asynccontextmanager
    async def held(
        self, upload: str, agent: Identity | None
    ) -> AsyncIterator[tuple[Versioned[UploadRecord], UploadDraft | None]]:
        """The record and the draft, which no other request uses meanwhile; a finished upload has
        no draft. Raises NotFound."""
        key = upload_key(upload)
        await self._find(key, agent)
        async with AsyncExitStack() as stack:
            draft = None
            with suppress(DraftGone):
                draft = await stack.enter_async_context(self.records.store.uploads.hold(key))
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
                await self.records.commit([UPLOADS.drop(key)])
                raise errors.NotFound(ResourceCodes.NO_SUCH_UPLOAD) from error

    async def _find(self, key: str, agent: Identity | None) -> Versioned[UploadRecord]:
        for kind in (UPLOADS, FINISHED_UPLOADS):
            stored = await self.records.read(kind, key)
            if stored is not None and stored.value.agent == (None if agent is None else agent.iri):
                return stored
        raise errors.NotFound(ResourceCodes.NO_SUCH_UPLOAD)

    async def _own(self, agent: Identity | None) -> list[Versioned[UploadRecord]]:
        """The uploads that an agent has in progress."""
        prefix = _agent_key(agent)
        found = await UPLOADS.page(
            self.records.store, after=prefix, now_ms=self.records.now_ms(), limit=MAX_OF_AGENT
        )
        return [each for each in found if each.key.startswith(prefix)]

    async def _check_number(self, own: int) -> None:
        limit = MAX_OF_AGENT
        in_all = await UPLOADS.count(self.records.store, at_most=MAX_IN_ALL)
        if in_all >= MAX_IN_ALL - RESERVED:
            limit = 0 if in_all >= MAX_IN_ALL else MAX_OF_RESERVED
        if own >= limit:
            raise errors.RateLimited(ResourceCodes.TOO_MANY_UPLOADS, retry_after_s=60)


def check_target(record: UploadRecord) -> None:
    """Raise Conflict for a target that is no ordinary document."""
    # Access rules and descriptions are small, and a file that happens to have such a name must not
    # become one.
    if is_container(record.target) or auxiliary_kind(record.target) is not None:
        raise errors.Conflict("Only documents can be uploaded in parts; use PUT")


def put_request(
    record: UploadRecord,
    body: RequestBody,
    agent: Identity | None,
    origin: str | None,
    *,
    draft: str | None = None,
) -> ResourceRequest:
    """The PUT that an upload becomes, with the body of its ``draft`` if it has one."""
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


def upload_key(upload: str) -> str:
    """The key of an upload's records and the name of its draft. Raises NotFound for a name that
    no upload can have."""
    if _NAME.fullmatch(upload) is None:
        raise errors.NotFound(ResourceCodes.NO_SUCH_UPLOAD)
    # For the public, the name is a secret.
    return upload[:_AGENT_CHARS] + secret_key(upload)[: 2 * _RANDOM_BYTES]
