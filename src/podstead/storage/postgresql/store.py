"""The PostgreSQL engine, assembled from its parts."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, Unpack

import psycopg

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage import base_store, records
from podstead.storage.blobs.staging import STAGED_GRACE_MS
from podstead.storage.layout import RootLayout
from podstead.storage.maintenance import Maintenance
from podstead.storage.postgresql import maintenance
from podstead.storage.postgresql.connecting import connect_for
from podstead.storage.postgresql.maintenance import PostgresRemovals
from podstead.storage.postgresql.parts import OpenParts, open_parts
from podstead.storage.postgresql.prefetch import RequestPrefetch, current_prefetch
from podstead.storage.postgresql.writer import run_steps
from podstead.storage.protocol import ChangeSignal, Compaction, InterprocessLock, Snapshot
from podstead.storage.removal import PodRemovals
from podstead.storage.removal_lock import removals_locked
from podstead.storage.schema import Row

if TYPE_CHECKING:  # for commands only
    from podstead.storage.inspection import Inspection

CLOCK_ERROR_MS: Final = 5 * 60 * 1000
"""How much the clocks of nodes may differ. A node keeps uses of proofs so much longer than it needs
them itself, because others may accept those proofs still."""

Found = TypeVar("Found")


class PostgresStore(base_store.BaseStore):
    """Implements Store with a PostgreSQL database and a directory of blobs that all nodes share.

    One object serves one event loop; each worker process of each node has its own.
    """

    _maintenance: ClassVar[Maintenance] = maintenance.PostgresMaintenance()
    _removals: ClassVar[PodRemovals] = PostgresRemovals()
    _run_steps = staticmethod(run_steps)

    def __init__(
        self, conninfo: str, layout: RootLayout, **options: Unpack[base_store.StoreOptions]
    ) -> None:
        """The database must have been migrated before :meth:`open`.

        ``conninfo`` is a connection string or URI of libpq; ``layout`` is that of a root on a disk
        that all nodes share.
        """
        super().__init__(layout, is_shared=True, **options)
        self._conninfo = conninfo
        self._opened: OpenParts | None = None

    # --- life cycle ---------------------------------------------------------------------------

    async def open(self, *, for_reading: bool = False) -> None:
        self._opened = await open_parts(
            self._conninfo,
            for_reading=for_reading,
            new_bodies=partial(self._new_bodies, self),
            inline_body_bytes=self._inline_body_bytes,
            max_waiting=self._max_waiting,
            removal_lock=self._layout.removal_lock,
        )

    async def close(self) -> None:
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        await opened.close()

    async def recount(self) -> None:
        from podstead.storage.postgresql import inspection  # noqa: PLC0415 - for commands

        writer = self._use().writer
        for root in await writer.run(inspection.storage_roots):
            await writer.run(partial(inspection.recount_storage, root=root))

    _select_version = (
        "SELECT 'PostgreSQL ' || current_setting('server_version'), version FROM schema_version"
    )

    async def database_bytes(self) -> int:
        return await self._use().reader.database_bytes()

    @contextmanager
    def removals_locked(self) -> Iterator[None]:
        """Of repositories on this node's disk, and of bodies by all nodes."""
        with (
            removals_locked(self._layout.removal_lock),
            psycopg.connect(self._conninfo) as connection,
        ):
            connection.execute(maintenance.HOLD_REMOVALS, (maintenance.REMOVAL_LOCK,))
            yield

    def inspect(self) -> Inspection:
        from podstead.storage.postgresql import inspection  # noqa: PLC0415 - for commands

        return base_store.checked(inspection.PostgresInspection(self._conninfo))

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

    def _all(
        self, select: str, values: Sequence[Any], make: Callable[[Row], Found]
    ) -> Coroutine[Any, Any, list[Found]]:
        return self._use().reader.all(select, values, make)

    def _all_slowly(
        self, select: str, values: Sequence[Any], make: Callable[[Row], Found]
    ) -> Coroutine[Any, Any, list[Found]]:
        return self._use().reader.all_slowly(select, values, make)

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

    async def list_members(
        self, container: ResourcePath, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[records.Metadata]:
        return await self._use().reader.list_members(container, after, limit)

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

    async def commit(self, write: records.Write) -> records.CommitOutcome:
        opened, ahead, seen = self._use(), current_prefetch(), None
        if ahead is not None:
            seen = ahead.seen(opened.reader, opened.registries.quota_of)
            ahead.end()
        outcome = await opened.writer.commit(write, seen)
        if isinstance(outcome, records.Committed) and outcome.dropped:
            opened.staging.dropped.add(outcome.dropped)
        return outcome

    def listen(self) -> ChangeSignal:
        return self._use().listening.listen()

    async def deleted_acls(
        self, write: records.Version, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, records.DeletedAcl]:
        return await self._use().reader.deleted_acls(write, paths)

    # --- registries ---------------------------------------------------------------------------

    def registries_version(self) -> int:
        # Without asking the database, nothing is known to be unchanged.
        return self._use_noted().registries.version()

    async def read_pod(self, name: str) -> records.PodRecord | None:
        return await self._use_noted().registries.read_pod(name)

    async def used_bytes(self, name: str) -> int:
        opened = self._use()
        state = opened.registries.state()
        if state is not None:
            pod = await opened.registries.read_pod(name)
            if pod is not None and pod.root == state.storage:
                return state.used_bytes or 0
        return await super().used_bytes(name)

    async def read_entry(self, entry: records.EntryId, *, now_ms: int) -> records.Entry | None:
        if "\0" in entry:  # which no text of this database contains, and strangers may ask for it
            return None
        return await super().read_entry(entry, now_ms=now_ms)

    async def read_token(self, token_id: str) -> records.TokenRecord | None:
        return await self._use_noted().registries.read_token(token_id)

    # --- maintenance --------------------------------------------------------------------------

    async def compact(self, *, now_ms: int, is_alone: bool) -> Compaction:  # noqa: ARG002
        # Other nodes may use the database however many use the data root, so its tables are not
        # written anew, which would lock them.
        await self._sweep_current(now_ms)
        try:
            connection = await connect_for(self._conninfo)
            async with connection:
                await connection.execute("VACUUM (ANALYZE)")
        except psycopg.Error as error:
            raise StorageError("The database could not be made smaller") from error
        return Compaction.VACUUMED

    async def sweep_own_files(self, *, now_ms: int) -> None:
        await self._use().blobs.remove_drafts(before_ms=now_ms - STAGED_GRACE_MS)

    async def _sweep_uses(self, now_ms: int) -> None:
        delete = partial(maintenance.delete_expired_uses, now_ms=now_ms - CLOCK_ERROR_MS)
        while await self._run(delete):
            pass
