"""Staging bodies: small ones stay in memory, large ones become blobs that are recorded before they
exist.

The engine records blobs (:class:`BlobLedger`), so that none is ever forgotten; the bytes are kept
elsewhere (``body_store.py``). A blob belongs to one resource, so the copy of a resource needs a
blob of its own. While a blob is being stored, its record is renewed, so that no sweep of another
process removes it however long that takes.

Bodies that commits of this worker have dropped are removed at once (:class:`DroppedBodies`), and
tried again after a while if they are being read or a backup is made. Their records stay until a
sweep, which also removes what a process that was killed has left.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import islice
from typing import Any, Final

from podstead.core.errors import Overloaded, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage import steps, uploads
from podstead.storage.blobs.body_store import BodyDraft, BodyStore
from podstead.storage.maintenance import Maintenance
from podstead.storage.records import BlobId, Body, Entry, EntryId, InlineBody, Metadata, StagedBlob

RETRY_S: Final = 1.0
"""How long after the last attempt a body that is being read is tried again."""

MAX_WAITING: Final = 10_000
"""How many bodies a worker remembers; the rest is left to the next sweep."""

_AT_ONCE: Final = 500

RemovalsAllowed = Callable[[], AbstractAsyncContextManager[bool]]
"""Whether bodies that nothing refers to may be removed, as long as the context lasts: a backup may
need them. Raises StorageError, Overloaded."""


class DroppedBodies:
    """The bodies that one worker has yet to remove."""

    def __init__(self, blobs: BodyStore, turn: RemovalsAllowed, *, delay_s: float) -> None:
        """``delay_s`` is how long a body stays for those who are just about to read it."""
        self._blobs = blobs
        self._turn = turn
        self._delay_s = delay_s
        self._waiting: dict[BlobId, float] = {}
        """The time of the event loop from which on each may be removed."""
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def add(self, blobs: Iterable[BlobId]) -> None:
        """Remove bodies that nothing refers to, soon and in the background."""
        from_s = asyncio.get_running_loop().time() + self._delay_s
        self._waiting.update((blob, from_s) for blob in blobs)
        while len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        if self._task is None:
            self._task = asyncio.create_task(self._remove_all(), name="podstead-dropped-bodies")

    async def remove_now(self) -> None:
        """Remove what can be removed. Raises StorageError, Overloaded."""
        async with self._lock:
            now_s = asyncio.get_running_loop().time()
            due = [blob for blob, from_s in self._waiting.items() if from_s <= now_s]
            for start in range(0, len(due), _AT_ONCE):
                async with self._turn() as is_allowed:
                    if not is_allowed:
                        return
                    for blob in await self._blobs.remove(islice(due, start, start + _AT_ONCE)):
                        self._waiting.pop(blob, None)

    async def close(self) -> None:
        """Leave the rest to a sweep."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _remove_all(self) -> None:
        try:
            await asyncio.sleep(self._delay_s)
            while True:
                await self.remove_now()
                if not self._waiting:
                    return
                await asyncio.sleep(RETRY_S)
        except (StorageError, Overloaded):
            logger.warning("Bodies could not be removed; the next sweep will do it", exc_info=True)
            self._waiting.clear()
        finally:
            self._task = None


logger = logging.getLogger("podstead.storage")

STAGED_GRACE_MS: Final = 60 * 60 * 1000
"""How long a draft may stop growing, or a staged blob wait for its write."""

GARBAGE_GRACE_MS: Final = 10 * 60 * 1000
"""How old garbage of a store is, at least, that a sweep removes without knowing who reads it."""

RENEWAL_S: Final = 5 * 60
"""How often the record of a blob that is being stored is renewed."""

DEFAULT_INLINE_BODY_BYTES: Final = 64 * 1024

_ALWAYS_MS: Final = 2**62
"""A time that is after all others."""


class BlobLedger:
    """The engine's record of blobs. Each method is one transaction and raises StorageError."""

    def __init__(
        self, step: Callable[[steps.Begin[Any]], Awaitable[Any]], maintenance: Maintenance
    ) -> None:
        """``step`` runs steps in a transaction of the writer."""
        self._step = step
        self._maintenance = maintenance

    async def record(self, blobs: Sequence[BlobId]) -> None:
        """Record blobs that a write may use."""
        await self._step(partial(self._maintenance.stage_blobs, blobs))

    async def renew(self, blobs: Sequence[BlobId]) -> None:
        """Record anew when the blobs were recorded that no write has used."""
        await self._step(partial(self._maintenance.renew_blobs, blobs))

    async def discard(self, blobs: Sequence[BlobId]) -> Sequence[BlobId]:
        """Make garbage of those of the blobs that no write has used, and return them."""
        discard = partial(self._maintenance.discard_blobs, blobs)
        discarded: Sequence[BlobId] = await self._step(discard)
        return discarded

    async def discard_unclaimed(self, *, staged_before_ms: int) -> None:
        """Make garbage of blobs that were recorded before that time and never used."""
        discard = self._maintenance.discard_unclaimed_blobs
        await self._step(partial(discard, staged_before_ms=staged_before_ms))

    async def find_garbage(self, *, dropped_before_ms: int) -> Sequence[BlobId]:
        """Some of the blobs that have been garbage since before that time."""
        find = partial(self._maintenance.find_garbage, dropped_before_ms=dropped_before_ms)
        found: Sequence[BlobId] = await self._step(find)
        return found

    async def forget(self, blobs: Sequence[BlobId]) -> None:
        """Forget garbage whose files have been removed, and end its charges."""
        await self._step(partial(self._maintenance.delete_garbage_rows, blobs))


class BodyStaging:
    """Receives bodies for writes, and removes what no write needs any more."""

    def __init__(
        self,
        blobs: BodyStore,
        ledger: BlobLedger,
        *,
        inline_body_bytes: int,
        removals_allowed: RemovalsAllowed,
    ) -> None:
        """Bodies of at most ``inline_body_bytes`` do not become blobs. Garbage is removed in a
        ``removals_allowed``, of which there is none while a backup is made."""
        self._blobs = blobs
        self._ledger = ledger
        self._inline_body_bytes = inline_body_bytes
        self._removals_allowed = removals_allowed
        self.dropped = DroppedBodies(blobs, removals_allowed, delay_s=blobs.removal_delay_s)

    async def stage(
        self, content: bytes | AsyncIterator[bytes], content_type: str | None = None
    ) -> Body:
        """Receive a body, as a whole or in chunks. Raises StorageError."""
        if isinstance(content, bytes):
            if len(content) <= self._inline_body_bytes:
                return InlineBody(content)
            return await self._stage_blob(content, _nothing(), content_type)
        # The length may be unknown, so every body starts in memory.
        head = bytearray()
        async for chunk in content:
            head += chunk
            if len(head) > self._inline_body_bytes:
                return await self._stage_blob(bytes(head), content, content_type)
        return InlineBody(bytes(head))

    async def _stage_blob(
        self, head: bytes, rest: AsyncIterator[bytes], content_type: str | None
    ) -> StagedBlob:
        async with self._blobs.draft(content_type) as draft:
            await draft.append(head)
            async for chunk in rest:
                await draft.append(chunk)
            return await self._store(draft)

    async def stage_upload(
        self, draft: str, size_bytes: int, content_type: str | None = None
    ) -> Body:
        """Stage the content of the draft of an upload. Raises StorageError."""
        if size_bytes <= self._inline_body_bytes:
            return InlineBody(await self._blobs.uploads.read(draft, size_bytes))
        async with self._blobs.draft_of_upload(draft, size_bytes, content_type) as body:
            return await self._store(body)

    async def _store(self, draft: BodyDraft) -> StagedBlob:
        await draft.sync()
        # Recorded before the blob exists under its name, so that a crash cannot leave one that is
        # never removed.
        async with self._recorded([draft.blob]):
            await draft.publish()
        return StagedBlob(draft.blob, draft.size_bytes)

    @asynccontextmanager
    async def _recorded(self, blobs: Sequence[BlobId]) -> AsyncIterator[None]:
        """Record blobs that are stored in the context, and discard them if that fails."""
        await self._ledger.record(blobs)
        renewing = asyncio.create_task(self._renew(blobs))
        try:
            yield
        except BaseException:
            await self.discard(blobs)
            raise
        finally:
            renewing.cancel()

    async def _renew(self, blobs: Sequence[BlobId]) -> None:
        while True:
            await asyncio.sleep(RENEWAL_S)
            try:
                await self._ledger.renew(blobs)
            except (StorageError, Overloaded):
                logger.warning("The record of a body could not be renewed", exc_info=True)

    async def stage_copies(
        self, resources: Sequence[Metadata]
    ) -> Mapping[ResourcePath, StagedBlob]:
        """Stage a copy of the blob of each resource. Raises StorageError, and has staged none
        then."""
        originals = {each.path: (each.blob, each.size_bytes) for each in resources if each.blob}
        if not originals:
            return {}
        names = {path: (blob, self._blobs.name_copy(blob)) for path, (blob, _) in originals.items()}
        copies = [copy for _, copy in names.values()]
        async with self._recorded(copies):
            await self._blobs.copy(names.values())
        return {path: StagedBlob(names[path][1], size) for path, (_, size) in originals.items()}

    async def discard(self, blobs: Sequence[BlobId]) -> None:
        """Remove those of the blobs that are still staged. Raises StorageError."""
        # Their write may have been committed although the caller failed.
        await self._blobs.remove(await self._ledger.discard(blobs))

    async def sweep(self, *, now_ms: int) -> None:
        """Remove staged blobs that were never committed, after their grace period, and garbage.

        Raises StorageError.
        """
        unclaimed_ms = now_ms - STAGED_GRACE_MS
        await self._blobs.remove_drafts(before_ms=unclaimed_ms)
        await self._ledger.discard_unclaimed(staged_before_ms=unclaimed_ms)
        await self.sweep_garbage(now_ms=now_ms)

    async def sweep_garbage(self, *, now_ms: int) -> bool:
        """Remove the blobs that nothing refers to, but none that is being read.

        False while a backup is made: all of them wait for the next sweep. Raises StorageError.
        """
        before_ms = now_ms - GARBAGE_GRACE_MS if self._blobs.removal_delay_s else _ALWAYS_MS
        # Files first, then rows: after a crash in between, rows refer to missing files, which is
        # harmless, whereas files without a row would never be removed.
        while True:
            blobs = await self._ledger.find_garbage(dropped_before_ms=before_ms)
            # Only now: a backup that begins after this has a moment at which they were garbage.
            async with self._removals_allowed() as is_allowed:
                if not is_allowed:
                    return False
                gone = await self._blobs.remove(blobs)
            if not gone:
                return True
            await self._ledger.forget(gone)

    async def sweep_uploads(
        self, read_entry: Callable[[EntryId], Awaitable[Entry | None]], *, now_ms: int
    ) -> None:
        """Remove the drafts of uploads that were finished, cancelled, or given up.

        Raises StorageError.
        """
        drafts = self._blobs.uploads
        for name in await drafts.list(before_ms=now_ms - STAGED_GRACE_MS):
            if await read_entry(uploads.UPLOADS.entry_of(name)) is None:
                await drafts.remove(name)


async def _nothing() -> AsyncIterator[bytes]:
    """No chunks."""
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk
