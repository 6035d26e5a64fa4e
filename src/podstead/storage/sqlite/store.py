"""The SQLite engine, assembled from its parts."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from podstead.core.errors import DiskFull, Overloaded, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs.bodies import ContentBody
from podstead.storage.blobs.body_store import BodyMissing, BodyStore, BodyStoreFactory
from podstead.storage.blobs.ledger import Ledger
from podstead.storage.blobs.local import LocalBlobs
from podstead.storage.blobs.staging import DEFAULT_INLINE_BODY_BYTES, BodyStaging
from podstead.storage.buckets import BucketRate
from podstead.storage.commit_figures import CommitFigures
from podstead.storage.dependencies import ReadAhead
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.open_body import OpenBody
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
    Put,
    StagedBlob,
    StoredBody,
    TokenRecord,
    Version,
    Write,
)
from podstead.storage.removal_lock import removals_allowed, removals_locked
from podstead.storage.sqlite import figures, maintenance
from podstead.storage.sqlite.change_notifier import ChangeNotifier
from podstead.storage.sqlite.connection import bytes_on_disk, open_reader
from podstead.storage.sqlite.ephemeral_store import EphemeralStore
from podstead.storage.sqlite.fair_lock import FairLock, ResourceLock
from podstead.storage.sqlite.migrate import check_schema
from podstead.storage.sqlite.reads import ReadConnection
from podstead.storage.sqlite.removal import begin_removal, continue_removal
from podstead.storage.sqlite.row_changes import new_change_queue
from podstead.storage.sqlite.shared_changes import SharedChanges
from podstead.storage.sqlite.shrinking import SMALL_BATCH_PAGES, checkpoint, release_pages
from podstead.storage.sqlite.transaction import WriteConnection
from podstead.storage.sqlite.trouble import explained
from podstead.storage.sqlite.writer import Writer

if TYPE_CHECKING:  # for commands only
    from podstead.storage.compaction import Compaction
    from podstead.storage.inspection import Inspection

logger = logging.getLogger("podstead.storage")

DELETED_ACL_MS = 24 * 60 * 60 * 1000
"""How long the content of deleted ACLs is kept. It is needed while disconnected subscribers are
still notified of the deletion, and not kept any longer because ACLs name people."""

DEFAULT_CHANGE_LOG_DAYS = 30
DEFAULT_MAX_WAITING = 1024

_MS_PER_DAY = 24 * 60 * 60 * 1000


class SqliteStore:
    """Implements Store with one SQLite database and a directory of blobs.

    One object serves one event loop; each worker process has its own, on the same files.
    """

    def __init__(
        self,
        root: Path,
        *,
        inline_body_bytes: int = DEFAULT_INLINE_BODY_BYTES,
        change_log_days: int = DEFAULT_CHANGE_LOG_DAYS,
        max_waiting: int = DEFAULT_MAX_WAITING,
        space: DiskSpace | None = None,
        bodies: BodyStoreFactory | None = None,
        shared: SharedChanges | None = None,
        vfs: str | None = None,
    ) -> None:
        """Does no I/O; ``root`` must be prepared before :meth:`open`.

        Bodies of at most ``inline_body_bytes`` are stored in the database. While ``max_waiting``
        writes wait for their commit, further ones are refused. ``space`` decides whether there is
        enough space for new content. ``bodies`` makes the store of large bodies, if they are not
        kept in files below ``root``. ``shared`` is what this worker and others tell each other
        about rows, if there are others. ``vfs`` is a VFS registered with SQLite, for fault tests.
        """
        self._space = space or DiskSpace(root)
        self._layout = RootLayout(root)
        self._inline_body_bytes = inline_body_bytes
        self._change_log_ms = change_log_days * _MS_PER_DAY
        self._max_waiting = max_waiting
        self._shared = shared
        self._vfs = vfs
        self._new_bodies = bodies or (lambda _: LocalBlobs(self._layout.blobs, self._space))
        self._opened: _Opened | None = None
        self._giving_back = asyncio.Lock()
        self._space.give_back = self._give_back

    # --- life cycle ---------------------------------------------------------------------------

    async def open(self) -> None:
        database = self._layout.database
        # Filled by the writer's thread, emptied by the reader: see row_changes.py.
        change_queue = new_change_queue()
        # If anything fails to open, what was opened before is closed: a process may try again.
        try:
            reader = open_reader(database, vfs=self._vfs)
            try:
                check_schema(reader)
                ephemeral = EphemeralStore(self._layout.ephemeral_database, self._space)
                try:
                    writer = WriteConnection(
                        database, change_queue, self._space, shared=self._shared, vfs=self._vfs
                    )
                except BaseException:
                    ephemeral.close()
                    raise
            except BaseException:
                reader.close()
                raise
        except apsw.Error as error:
            otherwise = f"The database {database} could not be opened"
            raise StorageError(explained(database, error, otherwise=otherwise)) from error
        change_notifier = ChangeNotifier(self._layout.change_pipes)
        group_commit = Writer(
            writer,
            FairLock(self._layout.fair_lock),
            max_waiting=self._max_waiting,
            on_changes=change_notifier.notify,
        )
        blobs = self._new_bodies(self)
        self._opened = _Opened(
            ReadConnection(reader, change_queue, self._shared),
            ephemeral,
            group_commit,
            blobs,
            BodyStaging(
                blobs,
                Ledger(group_commit.run, maintenance),
                inline_body_bytes=self._inline_body_bytes,
                removals_allowed=partial(removals_allowed, self._layout.removal_lock),
            ),
            change_notifier,
        )

    async def close(self) -> None:
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        await opened.staging.dropped.close()
        opened.reader.close()
        opened.ephemeral.close()
        try:
            # Before the rest, because waiting writes still need their blobs and notifications.
            await opened.writer.close()
        finally:
            opened.change_notifier.close()
            opened.blobs.close()

    async def database_bytes(self) -> int:
        self._use()
        try:
            return await asyncio.to_thread(bytes_on_disk, self._layout.database)
        except OSError as error:
            raise StorageError("The size of the database could not be read") from error

    def removals_locked(self) -> AbstractContextManager[None]:
        return removals_locked(self._layout.removal_lock)

    def commit_figures(self) -> CommitFigures:
        writer = self._use().writer
        return CommitFigures(writer.waiting, writer.batches, writer.commits_s)

    @property
    def prefetch(self) -> ReadAhead | None:
        return None

    @property
    def uploads(self) -> UploadDrafts:
        return self._use().blobs.uploads

    def _use(self) -> _Opened:
        if self._opened is None:
            raise StorageError("The store is not open")
        return self._opened

    # --- resources ----------------------------------------------------------------------------

    def data_version(self) -> int | None:
        return self._use().reader.data_version()

    def shared_ms(self, now_ms: int) -> int:
        return now_ms

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        return self._use().reader.read_metadata(paths)

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        opened = self._use()
        # A newer body is never returned for the version that the caller decided about.
        current = opened.reader.read_content(metadata.path, metadata.version)
        if current is None:
            return None
        if metadata.blob is not None:
            try:
                return await opened.blobs.open(metadata.blob, metadata.size_bytes)
            except BodyMissing:
                if opened.reader.read_content(metadata.path, metadata.version) is None:
                    return None  # it was replaced and removed in between
                raise
        content, sha256 = current
        if content is None or len(content) != metadata.size_bytes:
            raise StorageError("A body is missing or damaged")
        if sha256 is not None and hashlib.sha256(content).digest() != sha256:
            raise StorageError("A body is damaged: its hash does not match")
        return ContentBody(content)

    async def list_members(
        self, container: ResourcePath, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[Metadata]:
        return self._use().reader.list_members(container, after, limit)

    async def list_acls(
        self, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[Metadata]:
        return self._use().reader.list_acls(after, limit)

    async def read_tree(
        self,
        root: ResourcePath,
        *,
        also: Iterable[ResourcePath] = (),
        after: ResourcePath | None = None,
        limit: int,
    ) -> Snapshot:
        return self._use().reader.read_tree(root, also, after, limit)

    async def stage_copies(
        self, resources: Sequence[Metadata]
    ) -> Mapping[ResourcePath, StagedBlob]:
        try:
            self._space.check()
        except DiskFull:
            await self._space.make_room()
        return await self._use().staging.stage_copies(resources)

    async def stage_body(
        self, content: bytes | AsyncIterator[bytes], *, content_type: str | None = None
    ) -> Body:
        return await self._use().staging.stage(content, content_type)

    async def stage_upload(
        self, draft: str, size_bytes: int, *, content_type: str | None = None
    ) -> Body:
        return await self._use().staging.stage_upload(draft, size_bytes, content_type)

    async def discard(self, body: Body) -> None:
        if isinstance(body, StagedBlob):
            await self._use().staging.discard([body.blob])

    async def discard_all(self, bodies: Sequence[StagedBlob]) -> None:
        await self._use().staging.discard([body.blob for body in bodies])

    async def commit(self, write: Write) -> CommitOutcome:
        if write.puts and write.stores_content:
            self._space.check(sum(map(self._new_bytes, write.puts)))
        opened = self._use()
        outcome = await opened.writer.commit(write)
        if isinstance(outcome, Committed) and outcome.dropped:
            opened.staging.dropped.add(outcome.dropped)
        return outcome

    def interprocess_lock(self, path: ResourcePath) -> InterprocessLock | None:
        if self._shared is None:
            return None
        return ResourceLock(self._layout.fair_lock, path, self._use().writer.expect)

    def _new_bytes(self, put: Put) -> int:
        # The large body of a resource that is moved is on disk already, and stays.
        size_bytes = put.body.size_bytes
        moved = isinstance(put.body, StoredBody) and size_bytes > self._inline_body_bytes
        return 0 if moved else size_bytes

    async def changes_after(self, sequence: int, *, limit: int) -> Sequence[LoggedChange]:
        return self._use().reader.changes_after(sequence, limit)

    async def changes_before(
        self, sequence: int, *, first: int, below: ResourcePath, limit: int
    ) -> Sequence[LoggedChange]:
        return self._use().reader.changes_before(sequence, first, below, limit)

    async def newest_sequence(self) -> int:
        return self._use().reader.newest_sequence()

    def listen(self) -> ChangeSignal:
        return self._use().change_notifier.listen()

    async def deleted_acls(
        self, write: Version, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, DeletedAcl]:
        return self._use().reader.deleted_acls(write, paths)

    # --- registries ---------------------------------------------------------------------------

    def registries_version(self) -> int:
        return self._use().reader.registries_version()

    async def read_pod(self, name: str) -> PodRecord | None:
        return self._use().reader.read_pod(name)

    async def list_pods(self, *, after: str = "", limit: int) -> Sequence[PodRecord]:
        return self._use().reader.list_pods(after, limit)

    async def used_bytes(self, name: str) -> int:
        return self._use().reader.used_bytes(name)

    async def pod_totals(self, *, default_quota_bytes: int) -> PodTotals:
        return self._use().reader.pod_totals(default_quota_bytes)

    async def put_charge(self, charge: str, *, root: ResourcePath, size_bytes: int) -> None:
        await self._use().writer.run(
            partial(maintenance.put_charge, charge=charge, root=root, size_bytes=size_bytes)
        )

    async def list_charges(self, root: ResourcePath) -> Mapping[str, int]:
        return self._use().reader.list_charges(root)

    async def remove_pod(self, removal: PodRemoval) -> bool:
        opened = self._use()
        if not await opened.writer.run(partial(begin_removal, removal=removal)):
            return False
        opened.change_notifier.notify()
        # The first transaction has removed the pod. The rest only frees space, so a failure is not
        # reported to the caller.
        try:
            await _finish_removals(opened)
            await opened.staging.sweep_garbage(now_ms=removal.at_ms)
        except (StorageError, Overloaded):
            logger.exception("The rest of a pod could not be removed; the next sweep will continue")
        return True

    async def read_entry(self, entry: EntryId, *, now_ms: int) -> Entry | None:
        return self._use().reader.read_entry(entry, now_ms)

    async def list_entries(
        self, kind: str, *, owner: str | None = None, after: str = "", limit: int, now_ms: int
    ) -> Sequence[Entry]:
        return self._use().reader.list_entries(
            kind, owner=owner, after=after, limit=limit, now_ms=now_ms
        )

    async def count_entries(self, kind: str, *, at_most: int) -> int:
        return self._use().reader.count_entries(kind, at_most)

    async def read_token(self, token_id: str) -> TokenRecord | None:
        return self._use().reader.read_token(token_id)

    async def list_tokens(self, *, pod: str | None = None) -> Sequence[TokenRecord]:
        return self._use().reader.list_tokens(pod)

    # --- ephemeral records --------------------------------------------------------------------

    async def take(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        return self._use().ephemeral.take(key, BucketRate(capacity, per_s), now_ms=now_ms)

    async def wait_s(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        return self._use().ephemeral.wait_s(key, BucketRate(capacity, per_s), now_ms=now_ms)

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        return self._use().ephemeral.use_once(key, until_ms=until_ms, now_ms=now_ms)

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        return self._use().ephemeral.is_used(key, now_ms=now_ms)

    # --- maintenance --------------------------------------------------------------------------

    def inspect(self) -> Inspection:
        from podstead.storage.sqlite.inspection import SqliteInspection  # noqa: PLC0415 - for commands

        return SqliteInspection(self._layout.database)

    async def recount(self) -> None:
        await self._use().writer.run(figures.recount)

    async def take_orphan_body(self, path: ResourcePath) -> bytes | None:
        return await self._use().writer.run(partial(figures.take_orphan_body, path=path))

    async def compact(self, *, now_ms: int, is_alone: bool) -> Compaction:
        from podstead.storage.sqlite.compacting import compact_database  # noqa: PLC0415 - for commands

        opened = self._use()
        await self._sweep_current(opened, now_ms)
        return await compact_database(
            opened.writer,
            self._layout.database,
            is_alone=is_alone,
            free_bytes=self._space.free_bytes(),
        )

    async def _sweep_current(self, opened: _Opened, now_ms: int) -> None:
        """Sweep everything but the change log."""
        await opened.staging.sweep(now_ms=now_ms)
        await opened.staging.sweep_uploads(partial(self.read_entry, now_ms=now_ms), now_ms=now_ms)
        await _finish_removals(opened)
        await _sweep_ephemeral(opened.ephemeral, now_ms)
        # This removes a limited number of rows in a transaction of its own, as do those of the
        # change log, so that requests can run in between.
        while await opened.writer.run(partial(maintenance.delete_expired_entries, now_ms=now_ms)):
            pass

    async def _give_back(self) -> None:
        """Remove bodies that are waiting for it, and give all free pages of the database back to
        the disk. Raises StorageError, Overloaded."""
        opened = self._use()
        async with self._giving_back:
            await opened.staging.dropped.remove_now()
            release = partial(release_pages, keep_pages=0, batch_pages=SMALL_BATCH_PAGES)
            while opened.reader.free_pages() and await opened.writer.run(release):
                # Each time, so that the log can be used again and need not grow.
                await _checkpoint(self._layout.database)

    async def sweep_own_files(self, *, now_ms: int) -> None:  # noqa: ARG002
        self._use()  # there is one node, and sweep() removes its files as well

    async def sweep(self, *, now_ms: int) -> None:
        opened = self._use()
        await self._sweep_current(opened, now_ms)
        oldest_stored_ms = now_ms - self._change_log_ms
        while await opened.writer.run(
            partial(maintenance.delete_old_changes, before_ms=oldest_stored_ms)
        ):
            pass
        while await opened.writer.run(
            partial(maintenance.delete_old_acls, before_ms=oldest_stored_ms)
        ):
            pass
        content_stored_ms = now_ms - DELETED_ACL_MS
        while await opened.writer.run(
            partial(maintenance.clear_old_acl_content, before_ms=content_stored_ms)
        ):
            pass
        # Last, to release the pages that the above has freed.
        await _shrink(opened, self._layout.database)


@dataclass(frozen=True, slots=True)
class _Opened:
    """The parts of a store while it is open."""

    reader: ReadConnection
    ephemeral: EphemeralStore
    writer: Writer
    blobs: BodyStore
    staging: BodyStaging
    change_notifier: ChangeNotifier


async def _finish_removals(opened: _Opened) -> None:
    """Remove the rest of deleted pods in batches."""
    while await opened.writer.run(continue_removal):
        opened.change_notifier.notify()


async def _shrink(opened: _Opened, database: Path) -> None:
    """Return freed pages to the file system."""
    released = False
    while await opened.writer.run(release_pages):
        released = True
    if released:
        await _checkpoint(database)


async def _checkpoint(database: Path) -> None:
    try:
        await asyncio.to_thread(checkpoint, database)
    except apsw.Error as error:
        raise StorageError("The database could not be made smaller") from error


async def _sweep_ephemeral(ephemeral: EphemeralStore, now_ms: int) -> None:
    more = True
    while more:
        more = ephemeral.sweep(now_ms=now_ms)
        await asyncio.sleep(0)  # requests come first
