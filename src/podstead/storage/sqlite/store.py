"""The SQLite engine, assembled from its parts."""

# ruff: noqa: SLF001 - the store and its parts know each other

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Unpack

import apsw

from podstead.core.errors import DiskFull, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage import base_store, records
from podstead.storage.blobs.body_store import BodyStore
from podstead.storage.blobs.staging import BlobLedger, BodyStaging
from podstead.storage.dependencies import ReadAhead
from podstead.storage.layout import RootLayout
from podstead.storage.maintenance import Maintenance
from podstead.storage.protocol import ChangeSignal, InterprocessLock, Snapshot
from podstead.storage.removal import PodRemovals
from podstead.storage.removal_lock import removals_allowed, removals_locked
from podstead.storage.schema import Row
from podstead.storage.sqlite import fair_lock, maintenance
from podstead.storage.sqlite.change_notifier import ChangeNotifier
from podstead.storage.sqlite.compacting import SMALL_BATCH_PAGES, checkpoint, release_pages
from podstead.storage.sqlite.connection import bytes_on_disk, explained, open_reader
from podstead.storage.sqlite.database import migrations
from podstead.storage.sqlite.ephemeral_store import EphemeralStore
from podstead.storage.sqlite.maintenance import SqliteRemovals
from podstead.storage.sqlite.reads import ReadConnection
from podstead.storage.sqlite.row_changes import ChangeQueue, SharedChanges, new_change_queue
from podstead.storage.sqlite.statements import in_sqlite, run_steps
from podstead.storage.sqlite.transaction import WriteConnection
from podstead.storage.sqlite.writer import Writer
from podstead.storage.steps import Begin

if TYPE_CHECKING:  # for commands only
    from podstead.storage.inspection import Inspection
    from podstead.storage.protocol import Compaction

Found = TypeVar("Found")


class SqliteStore(base_store.BaseStore):
    """Implements Store with one SQLite database and a directory of blobs.

    One object serves one event loop; each worker process has its own, on the same files.
    """

    _maintenance: ClassVar[Maintenance] = maintenance.SqliteMaintenance()
    _removals: ClassVar[PodRemovals] = SqliteRemovals()
    _run_steps = staticmethod(run_steps)

    def __init__(
        self,
        root: Path,
        *,
        shared: SharedChanges | None = None,
        vfs: str | None = None,
        **options: Unpack[base_store.StoreOptions],
    ) -> None:
        """``root`` must be prepared before :meth:`open`.

        ``shared`` is what this worker and others tell each other about rows, if there are others.
        ``vfs`` is a VFS registered with SQLite, for fault tests.
        """
        super().__init__(RootLayout(root), **options)
        self._shared = shared
        self._vfs = vfs
        self._opened: _Parts | None = None
        self._giving_back = asyncio.Lock()
        self._space.give_back = self._give_back

    # --- life cycle ---------------------------------------------------------------------------

    async def open(self, *, for_reading: bool = False) -> None:
        database = self._layout.database
        with self._opening():
            reader = open_reader(database, vfs=self._vfs)
            # If anything fails to open, what was opened before is closed: a process may try again.
            try:
                run_steps(reader, migrations().check_current)
                parts = _Parts(self, reader)
                if not for_reading:
                    parts.open_for_writing()
            except BaseException:
                reader.close()
                raise
        self._opened = parts

    async def close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Raise StorageError for what fails to open."""
        database = self._layout.database
        try:
            yield
        except apsw.Error as error:
            otherwise = f"The database {database} could not be opened"
            raise StorageError(explained(database, error, otherwise=otherwise)) from error

    _select_version = "SELECT 'SQLite ' || sqlite_version(), version FROM schema_version"

    async def database_bytes(self) -> int:
        self._use()
        try:
            return await asyncio.to_thread(bytes_on_disk, self._layout.database)
        except OSError as error:
            raise StorageError("The size of the database could not be read") from error

    def removals_locked(self) -> AbstractContextManager[None]:
        return removals_locked(self._layout.removal_lock)

    @property
    def prefetch(self) -> ReadAhead | None:
        return None

    def _new_writer(self, changes: ChangeQueue, on_changes: Callable[[], None]) -> Writer:
        with self._opening():
            connection = WriteConnection(
                self._layout.database, changes, self._space, shared=self._shared, vfs=self._vfs
            )
        lock = fair_lock.FairLock(self._layout.fair_lock, signals=self._signals)
        return Writer(connection, lock, max_waiting=self._max_waiting, on_changes=on_changes)

    @property
    def _signals(self) -> fair_lock.ReleaseSignals | None:
        return None if self._shared is None else self._shared.signals

    def _new_staging(self, parts: _Parts) -> BodyStaging:
        def step(begin: Begin[Found]) -> Awaitable[Found]:
            return parts.writer.run(partial(run_steps, begin=begin))

        return BodyStaging(
            parts.blobs,
            BlobLedger(step, self._maintenance),
            inline_body_bytes=self._inline_body_bytes,
            removals_allowed=partial(removals_allowed, self._layout.removal_lock),
        )

    def _use(self) -> _Parts:
        if self._opened is None:
            raise StorageError("The store is not open")
        return self._opened

    _use_noted = _use

    async def _all(
        self, select: str, values: Sequence[Any], make: Callable[[Row], Found]
    ) -> list[Found]:
        return self._use().reader.all(in_sqlite(select), values, make)

    # --- resources ----------------------------------------------------------------------------

    def data_version(self) -> int | None:
        return self._use().reader.data_version()

    def shared_ms(self, now_ms: int) -> int:
        return now_ms

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        return self._use().reader.read_metadata(paths)

    async def list_members(
        self, container: ResourcePath, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[records.Metadata]:
        return self._use().reader.list_members(container, after, limit)

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
        self, resources: Sequence[records.Metadata]
    ) -> Mapping[ResourcePath, records.StagedBlob]:
        try:
            self._space.check()
        except DiskFull:
            await self._space.make_room()
        return await super().stage_copies(resources)

    async def commit(self, write: records.Write) -> records.CommitOutcome:
        if write.puts and write.stores_content:
            self._space.check(sum(map(self._new_bytes, write.puts)))
        opened = self._use()
        outcome = await opened.writer.commit(write)
        if isinstance(outcome, records.Committed) and outcome.dropped:
            opened.staging.dropped.add(outcome.dropped)
        return outcome

    def interprocess_lock(self, path: ResourcePath) -> InterprocessLock | None:
        if self._shared is None:
            return None
        opened = self._use()
        return fair_lock.ResourceLock(opened.resource_queues, path, opened.writer.expect)

    def _new_bytes(self, put: records.Put) -> int:
        # The large body of a resource that is moved is on disk already, and stays.
        size_bytes = put.body.size_bytes
        moved = isinstance(put.body, records.StoredBody) and size_bytes > self._inline_body_bytes
        return 0 if moved else size_bytes

    def listen(self) -> ChangeSignal:
        return self._use().change_notifier.listen()

    async def deleted_acls(
        self, write: records.Version, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, records.DeletedAcl]:
        return self._use().reader.deleted_acls(write, paths)

    # --- registries ---------------------------------------------------------------------------

    def registries_version(self) -> int:
        return self._use().reader.registries_version()

    async def read_pod(self, name: str) -> records.PodRecord | None:
        return self._use().reader.read_pod(name)

    async def read_token(self, token_id: str) -> records.TokenRecord | None:
        return self._use().reader.read_token(token_id)

    # --- maintenance --------------------------------------------------------------------------

    def inspect(self) -> Inspection:
        from podstead.storage.sqlite.inspection import SqliteInspection  # noqa: PLC0415 - for commands

        return base_store.checked(SqliteInspection(self._layout.database))

    async def recount(self) -> None:
        from podstead.storage.sqlite.inspection import recount  # noqa: PLC0415 - for commands

        await self._use().writer.run(recount)

    async def compact(self, *, now_ms: int, is_alone: bool) -> Compaction:
        from podstead.storage.sqlite.compacting import compact_database  # noqa: PLC0415 - for commands

        opened = self._use()
        await self._sweep_current(now_ms)
        return await compact_database(
            opened.writer,
            self._layout.database,
            is_alone=is_alone,
            free_bytes=self._space.free_bytes(),
        )

    async def _sweep_uses(self, now_ms: int) -> None:
        ephemeral = self._use().ephemeral
        more = True
        while more:
            more = ephemeral.sweep(now_ms=now_ms)
            await asyncio.sleep(0)  # requests come first

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
        await super().sweep(now_ms=now_ms)
        # Last, to return the pages that the above has freed to the file system.
        released = False
        while await self._run(release_pages):
            released = True
        if released:
            await _checkpoint(self._layout.database)


class _Parts:
    """The parts of a store while it is open. What only writes need is opened with the first of
    them, unless that was done before: commands that read take no part in the turns of writers."""

    def __init__(self, store: SqliteStore, reader: apsw.Connection) -> None:
        """Take ownership of ``reader``."""
        self._store = store
        # Filled by the writer's thread, emptied by the reader: see row_changes.py.
        self._changes = new_change_queue()
        self.reader = ReadConnection(reader, self._changes, store._shared)

    @cached_property
    def ephemeral(self) -> EphemeralStore:
        store = self._store
        with store._opening():
            return EphemeralStore(store._layout.ephemeral_database, store._space)

    @cached_property
    def writer(self) -> Writer:
        return self._store._new_writer(self._changes, self.change_notifier.notify)

    @cached_property
    def resource_queues(self) -> fair_lock.ResourceQueues:
        return fair_lock.ResourceQueues(self._store._layout.fair_lock, self._store._signals)

    @cached_property
    def change_notifier(self) -> ChangeNotifier:
        return ChangeNotifier(self._store._layout.change_pipes)

    @cached_property
    def blobs(self) -> BodyStore:
        return self._store._new_bodies(self._store)

    @cached_property
    def staging(self) -> BodyStaging:
        return self._store._new_staging(self)

    def notify(self) -> None:
        self.change_notifier.notify()

    def open_for_writing(self) -> None:
        """Open everything, and nothing if anything fails. Raises StorageError."""
        ephemeral = self.ephemeral
        try:
            _ = self.writer, self.staging
        except BaseException:
            ephemeral.close()
            raise

    async def close(self) -> None:
        """Close what was opened."""
        opened = self.__dict__
        if "staging" in opened:
            await self.staging.dropped.close()
        self.reader.close()
        if "ephemeral" in opened:
            self.ephemeral.close()
        if "resource_queues" in opened:
            self.resource_queues.close()
        try:
            # Before the rest, because waiting writes still need their blobs and notifications.
            if "writer" in opened:
                await self.writer.close()
        finally:
            if "change_notifier" in opened:
                self.change_notifier.close()
            if "blobs" in opened:
                self.blobs.close()


async def _checkpoint(database: Path) -> None:
    try:
        await asyncio.to_thread(checkpoint, database)
    except apsw.Error as error:
        raise StorageError("The database could not be made smaller") from error
