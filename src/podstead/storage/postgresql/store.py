"""The PostgreSQL engine, assembled from its parts."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import (
    AsyncIterator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import psycopg

from podstead.core.errors import Overloaded, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs.bodies import ContentBody
from podstead.storage.blobs.body_store import BodyMissing, BodyStoreFactory
from podstead.storage.blobs.local import LocalBlobs
from podstead.storage.blobs.staging import (
    DEFAULT_INLINE_BODY_BYTES,
    STAGED_GRACE_MS,
)
from podstead.storage.buckets import BucketRate
from podstead.storage.commit_figures import CommitFigures
from podstead.storage.compaction import Compaction
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.open_body import OpenBody
from podstead.storage.postgresql import figures, maintenance
from podstead.storage.postgresql.connecting import connect_for
from podstead.storage.postgresql.parts import OpenParts, open_parts
from podstead.storage.postgresql.prefetch import RequestPrefetch, current_prefetch
from podstead.storage.postgresql.removal import begin_removal
from podstead.storage.postgresql.sweeping import finish_removals, run_in_batches
from podstead.storage.protocol import ChangeSignal, InterprocessLock, Snapshot, UploadDrafts
from podstead.storage.records import (
    Body,
    CommitOutcome,
    Committed,
    DeletedAcl,
    Entry,
    EntryId,
    LoggedChange,
    Metadata,
    PodRecord,
    PodRemoval,
    PodTotals,
    StagedBlob,
    TokenRecord,
    Version,
    Write,
)
from podstead.storage.removal_lock import removals_locked

if TYPE_CHECKING:  # for commands only
    from podstead.storage.inspection import Inspection

logger = logging.getLogger("podstead.storage")

DELETED_ACL_MS: Final = 24 * 60 * 60 * 1000
"""How long the content of deleted ACLs is kept, as the other engine does."""

DEFAULT_CHANGE_LOG_DAYS: Final = 30
DEFAULT_MAX_WAITING: Final = 1024

CLOCK_ERROR_MS: Final = 5 * 60 * 1000
"""How much the clocks of nodes may differ. A node keeps uses of proofs so much longer than it needs
them itself, because others may accept those proofs still."""

_MS_PER_DAY: Final = 24 * 60 * 60 * 1000


class PostgresStore:
    """Implements Store with a PostgreSQL database and a directory of blobs that all nodes share.

    One object serves one event loop; each worker process of each node has its own.
    """

    def __init__(
        self,
        conninfo: str,
        layout: RootLayout,
        *,
        inline_body_bytes: int = DEFAULT_INLINE_BODY_BYTES,
        change_log_days: int = DEFAULT_CHANGE_LOG_DAYS,
        max_waiting: int = DEFAULT_MAX_WAITING,
        space: DiskSpace | None = None,
        bodies: BodyStoreFactory | None = None,
    ) -> None:
        """Does no I/O; the database must have been migrated before :meth:`open`.

        ``conninfo`` is a connection string or URI of libpq; ``layout`` is that of a root on a disk
        that all nodes share. Bodies of at most ``inline_body_bytes``
        are stored in the database. While ``max_waiting`` writes wait for their commit, further ones
        are refused. ``bodies`` makes the store of large bodies, if they are not kept in files
        of ``layout``.
        """
        self._conninfo = conninfo
        self._removal_lock = layout.removal_lock
        self._inline_body_bytes = inline_body_bytes
        self._change_log_ms = change_log_days * _MS_PER_DAY
        self._max_waiting = max_waiting
        self._space = space or DiskSpace(layout.root)
        self._new_bodies = bodies or (
            lambda _: LocalBlobs(layout.blobs, self._space, is_shared=True)
        )
        self._opened: OpenParts | None = None

    # --- life cycle ---------------------------------------------------------------------------

    async def open(self) -> None:
        self._opened = await open_parts(
            self._conninfo,
            new_bodies=partial(self._new_bodies, self),
            inline_body_bytes=self._inline_body_bytes,
            max_waiting=self._max_waiting,
            removal_lock=self._removal_lock,
        )

    async def close(self) -> None:
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        await opened.close()

    @property
    def uploads(self) -> UploadDrafts:
        return self._use().blobs.uploads

    async def recount(self) -> None:
        writer = self._use().writer
        for root in await writer.run(figures.storage_roots):
            await writer.run(partial(figures.recount_storage, root=root))

    async def take_orphan_body(self, path: ResourcePath) -> bytes | None:
        return await self._use().writer.run(partial(figures.take_orphan_body, path=path))

    async def database_bytes(self) -> int:
        return await self._use().reader.database_bytes()

    @contextmanager
    def removals_locked(self) -> Iterator[None]:
        """Of repositories on this node's disk, and of bodies by all nodes."""
        with (
            removals_locked(self._removal_lock),
            psycopg.connect(self._conninfo) as connection,
        ):
            connection.execute(maintenance.HOLD_REMOVALS, (maintenance.REMOVAL_LOCK,))
            yield

    def commit_figures(self) -> CommitFigures:
        writer = self._use().writer
        return CommitFigures(writer.waiting, writer.batches, writer.commits_s)

    def inspect(self) -> Inspection:
        self._use()
        from podstead.storage.postgresql.inspection import (  # noqa: PLC0415 - for commands
            PostgresInspection,
        )

        return PostgresInspection(self._conninfo)

    def _use(self) -> OpenParts:
        """For whatever is not read ahead: the response to the request cannot be used again."""
        ahead = current_prefetch()
        if ahead is not None:
            ahead.note_unconfirmable()
        return self._use_noted()

    def _use_noted(self) -> OpenParts:
        """For what can be read ahead for the next request, and is noted."""
        if self._opened is None or self._opened.reads.closed:
            raise StorageError("The store is not open")
        return self._opened

    # --- resources ----------------------------------------------------------------------------

    def interprocess_lock(self, path: ResourcePath) -> InterprocessLock | None:
        del path
        return None

    def data_version(self) -> int | None:
        self._use_noted()
        return None

    def shared_ms(self, now_ms: int) -> int:
        return now_ms + self._use_noted().clock.ahead_ms

    def prefetch(self, paths: Iterable[ResourcePath]) -> RequestPrefetch:
        return RequestPrefetch(self._use_noted().reader, paths)

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        opened, ahead = self._use_noted(), current_prefetch()
        if ahead is None or ahead.state(opened.reader) is None:
            return await opened.reader.read_metadata(paths)
        paths = tuple(paths)
        snapshot = ahead.take_snapshot(paths)
        if snapshot is None:
            snapshot = await opened.reader.read_metadata(paths)
            ahead.note(snapshot)
            ahead.learn(snapshot)
        return snapshot

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        opened = self._use_noted()
        # A newer body is never returned for the version that the caller decided about. So the
        # metadata, which the caller has read, is all that the body depends on.
        current = await opened.reader.read_content(metadata.path, metadata.version)
        if current is None:
            return None
        if metadata.blob is not None:
            try:
                return await opened.blobs.open(metadata.blob, metadata.size_bytes)
            except BodyMissing:
                if await opened.reader.read_content(metadata.path, metadata.version) is None:
                    return None  # it was replaced and removed in between
                raise
        content, sha256 = current
        if content is None or sha256 is None or len(content) != metadata.size_bytes:
            raise StorageError("A body is missing or damaged")
        if hashlib.sha256(content).digest() != sha256:
            raise StorageError("A body is damaged: its hash does not match")
        return ContentBody(content)

    async def list_members(
        self, container: ResourcePath, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[Metadata]:
        return await self._use().reader.list_members(container, after, limit)

    async def list_acls(
        self, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[Metadata]:
        return await self._use().reader.list_acls(after, limit)

    async def read_tree(
        self,
        root: ResourcePath,
        *,
        also: Iterable[ResourcePath] = (),
        after: ResourcePath | None = None,
        limit: int,
    ) -> Snapshot:
        snapshot = await self._use().reader.read_tree(root, also, after, limit)
        ahead = current_prefetch()
        if ahead is not None:
            ahead.learn(snapshot)
        return snapshot

    async def stage_body(
        self, content: bytes | AsyncIterator[bytes], *, content_type: str | None = None
    ) -> Body:
        return await self._use().staging.stage(content, content_type)

    async def stage_upload(
        self, draft: str, size_bytes: int, *, content_type: str | None = None
    ) -> Body:
        return await self._use().staging.stage_upload(draft, size_bytes, content_type)

    async def stage_copies(
        self, resources: Sequence[Metadata]
    ) -> Mapping[ResourcePath, StagedBlob]:
        return await self._use().staging.stage_copies(resources)

    async def discard(self, body: Body) -> None:
        if isinstance(body, StagedBlob):
            await self._use().staging.discard([body.blob])

    async def discard_all(self, bodies: Sequence[StagedBlob]) -> None:
        await self._use().staging.discard([body.blob for body in bodies])

    async def commit(self, write: Write) -> CommitOutcome:
        opened, ahead, seen = self._use(), current_prefetch(), None
        if ahead is not None:
            seen = ahead.seen(opened.reader, opened.registries.quota_of)
            ahead.end()
        outcome = await opened.writer.commit(write, seen)
        if isinstance(outcome, Committed) and outcome.dropped:
            opened.staging.dropped.add(outcome.dropped)
        return outcome

    async def changes_after(self, sequence: int, *, limit: int) -> Sequence[LoggedChange]:
        return await self._use().reader.changes_after(sequence, limit)

    async def changes_before(
        self, sequence: int, *, first: int, below: ResourcePath, limit: int
    ) -> Sequence[LoggedChange]:
        return await self._use().reader.changes_before(sequence, first, below, limit)

    async def newest_sequence(self) -> int:
        return await self._use().reader.newest_sequence()

    def listen(self) -> ChangeSignal:
        return self._use().listening.listen()

    async def deleted_acls(
        self, write: Version, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, DeletedAcl]:
        return await self._use().reader.deleted_acls(write, paths)

    # --- registries ---------------------------------------------------------------------------

    def registries_version(self) -> int:
        # Without asking the database, nothing is known to be unchanged.
        return self._use_noted().registries.version()

    async def read_pod(self, name: str) -> PodRecord | None:
        return await self._use_noted().registries.read_pod(name)

    async def list_pods(self, *, after: str = "", limit: int) -> Sequence[PodRecord]:
        return await self._use().reader.list_pods(after, limit)

    async def used_bytes(self, name: str) -> int:
        opened = self._use()
        state = opened.registries.state()
        if state is not None:
            pod = await opened.registries.read_pod(name)
            if pod is not None and pod.root == state.storage:
                return state.used_bytes or 0
        return await opened.reader.used_bytes(name)

    async def pod_totals(self, *, default_quota_bytes: int) -> PodTotals:
        return await self._use().reader.pod_totals(default_quota_bytes)

    async def put_charge(self, charge: str, *, root: ResourcePath, size_bytes: int) -> None:
        await self._use().writer.run(
            partial(maintenance.put_charge, charge=charge, root=root, size_bytes=size_bytes)
        )

    async def list_charges(self, root: ResourcePath) -> Mapping[str, int]:
        return await self._use().reader.list_charges(root)

    async def remove_pod(self, removal: PodRemoval) -> bool:
        opened = self._use()
        if not await opened.writer.run(partial(begin_removal, removal=removal)):
            return False
        opened.listening.wake()
        # The first transaction has removed the pod. The rest only frees space, so a failure is not
        # reported to the caller.
        try:
            await finish_removals(opened.writer, opened.listening)
            await opened.staging.sweep_garbage(now_ms=removal.at_ms)
        except (StorageError, Overloaded):
            logger.exception("The rest of a pod could not be removed; the next sweep will continue")
        return True

    async def read_entry(self, entry: EntryId, *, now_ms: int) -> Entry | None:
        return await self._use().reader.read_entry(entry, now_ms)

    async def list_entries(
        self, kind: str, *, owner: str | None = None, after: str = "", limit: int, now_ms: int
    ) -> Sequence[Entry]:
        return await self._use().reader.list_entries(
            kind, owner=owner, after=after, limit=limit, now_ms=now_ms
        )

    async def count_entries(self, kind: str, *, at_most: int) -> int:
        return await self._use().reader.count_entries(kind, at_most)

    async def read_token(self, token_id: str) -> TokenRecord | None:
        return await self._use_noted().registries.read_token(token_id)

    async def list_tokens(self, *, pod: str | None = None) -> Sequence[TokenRecord]:
        return await self._use().reader.list_tokens(pod)

    # --- ephemeral records --------------------------------------------------------------------

    async def take(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        return await self._use().ephemeral.take(key, BucketRate(capacity, per_s), now_ms=now_ms)

    async def wait_s(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        return await self._use().ephemeral.wait_s(key, BucketRate(capacity, per_s), now_ms=now_ms)

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        return await self._use().ephemeral.use_once(key, until_ms=until_ms, now_ms=now_ms)

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        return await self._use().ephemeral.is_used(key, now_ms=now_ms)

    # --- maintenance --------------------------------------------------------------------------

    async def compact(self, *, now_ms: int, is_alone: bool) -> Compaction:  # noqa: ARG002
        # Other nodes may use the database however many use the data root, so its tables are not
        # written anew, which would lock them.
        await self._sweep_current(self._use(), now_ms)
        try:
            connection = await connect_for(self._conninfo)
            async with connection:
                await connection.execute("VACUUM (ANALYZE)")
        except psycopg.Error as error:
            raise StorageError("The database could not be made smaller") from error
        return Compaction.VACUUMED

    async def sweep_own_files(self, *, now_ms: int) -> None:
        await self._use().blobs.remove_drafts(before_ms=now_ms - STAGED_GRACE_MS)

    async def sweep(self, *, now_ms: int) -> None:
        opened = self._use()
        await self._sweep_current(opened, now_ms)
        oldest_stored_ms = now_ms - self._change_log_ms
        await run_in_batches(
            opened.writer,
            partial(maintenance.delete_old_changes, before_ms=oldest_stored_ms),
            partial(maintenance.delete_old_acls, before_ms=oldest_stored_ms),
            partial(maintenance.clear_old_acl_content, before_ms=now_ms - DELETED_ACL_MS),
        )

    async def _sweep_current(self, opened: OpenParts, now_ms: int) -> None:
        """Sweep everything but the change log."""
        await opened.staging.sweep(now_ms=now_ms)
        await opened.staging.sweep_uploads(partial(self.read_entry, now_ms=now_ms), now_ms=now_ms)
        await finish_removals(opened.writer, opened.listening)
        await run_in_batches(
            opened.writer,
            partial(maintenance.delete_expired_uses, now_ms=now_ms - CLOCK_ERROR_MS),
            partial(maintenance.delete_expired_entries, now_ms=now_ms),
        )
