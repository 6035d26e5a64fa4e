"""The protocol of a storage engine.

Absence is ``None``, a conflict is a value (:class:`~podstead.storage.records.VersionConflict`), and
a failure raises :class:`~podstead.core.errors.StorageError`; it is never reported as absence. All
operations may be called concurrently by many tasks and worker processes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from podstead.core.histogram import Histogram
from podstead.core.identifiers import ResourcePath
from podstead.storage import dependencies, former_states, records, schema
from podstead.storage.open_body import OpenBody

if TYPE_CHECKING:
    from podstead.storage.inspection import Inspection


BATCH_BOUNDS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
COMMIT_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class CommitFigures(msgspec.Struct, frozen=True):
    """What a process has committed: transactions, each with one or more writes.

    ``waiting`` is the number of writes that wait for theirs.
    """

    waiting: int
    sizes: Histogram
    """The number of writes of each transaction."""
    durations_s: Histogram
    """How long each transaction waited for the disk."""


Snapshot = Mapping[ResourcePath, records.Metadata | None]
"""The metadata of several paths in one snapshot of the store; ``None`` if nothing is stored."""


class ChangeSignal(Protocol):
    """Notifies one listener that the change log may have grown."""

    async def wait(self) -> None:
        """Wait until something may have been committed since the last call or the creation.

        Returns after about a second in any case, because a signal can be lost. For one task only.
        """

    def close(self) -> None:
        """Stop listening. Idempotent."""


class DocumentSource(Protocol):
    """Reads stored documents; every store is one."""

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        """Read the metadata of each path, all in one snapshot. Raises StorageError."""

    async def open_body(self, metadata: records.Metadata) -> OpenBody | None:
        """Open the body of exactly this version; ``None`` if it is no longer the current one.

        Raises StorageError, also if the version is current but its bytes are missing or damaged.
        """


class InterprocessLock(Protocol):
    """The place of a process among those that write to one resource."""

    def is_taken(self) -> bool:
        """Whether a process, perhaps this one, has its turn or waits for it."""

    async def take(self) -> bool:
        """Wait until the processes before this one have ended their turns, but not for long.

        Returns whether there were any.
        """

    @property
    def expect(self) -> Callable[[int], None]:
        """Says, before a write of this turn is committed, how many more follow at once."""

    def end(self) -> None:
        """End the turn, or give up the place. Idempotent."""


class ChangeLog(Protocol):
    """The change log of a store."""

    async def changes_after(self, sequence: int, *, limit: int) -> Sequence[records.LoggedChange]:
        """The rows of the change log after this sequence number, in order. Raises StorageError."""

    async def newest_sequence(self) -> int:
        """The sequence number of the newest row ever added to the change log, 0 if there was none.

        Raises StorageError.
        """

    def listen(self) -> ChangeSignal:
        """Start listening for new rows of the change log, from any process."""


class ResourceStore(DocumentSource, ChangeLog, Protocol):
    """Resources, their bodies and the change log."""

    def data_version(self) -> int | None:
        """A number that changes with every commit of any process; ``None`` if the engine has none.

        While it is unchanged, everything that was read before is still current. This and all reads
        may be as old as the callback of the event loop that asks for them, and no older.
        """

    def shared_ms(self, now_ms: int) -> int:
        """That time of this machine by the clock that dates what is stored. Raises StorageError."""

    async def list_members(
        self, container: ResourcePath, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[records.Metadata]:
        """Up to ``limit`` members in the byte order of their paths, after the path ``after``."""

    async def read_tree(
        self,
        root: ResourcePath,
        *,
        also: Iterable[ResourcePath] = (),
        after: ResourcePath | None = None,
        limit: int,
    ) -> Snapshot:
        """The metadata of ``also``, and of all resources at or below ``root``, including auxiliary
        ones, in one snapshot.

        Of the tree, only what exists is included, at most ``limit`` resources in the byte order of
        their paths, from the first path after ``after`` on. Raises StorageError.
        """

    async def list_acls(
        self, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[records.Metadata]:
        """Up to ``limit`` ACLs of the whole store in the byte order of their paths, after the path
        ``after``. Raises StorageError."""

    async def stage_copies(
        self, resources: Sequence[records.Metadata]
    ) -> Mapping[ResourcePath, records.StagedBlob]:
        """Stage a copy of the body of each of the resources whose body is large.

        The bytes are not read. The copies are staged bodies like those of :meth:`stage_body`.
        Raises StorageError, and has staged none then.
        """

    async def discard_all(self, bodies: Sequence[records.StagedBlob]) -> None:
        """Remove staged bodies as :meth:`discard` does, in one step. Raises StorageError."""

    async def stage_body(
        self, content: bytes | AsyncIterator[bytes], *, content_type: str | None = None
    ) -> records.Body:
        """Receive a body, as a whole or in chunks, and store it durably if it is large.

        With ``content_type``, others may be sent to where it is stored
        (:class:`~podstead.storage.open_body.AddressedBody`).
        A staged blob belongs to the first write that is committed with it. A blob that no write
        uses is removed by :meth:`discard`, or after an hour. Errors of ``content`` are propagated
        and leave nothing behind. Raises StorageError.
        """

    async def stage_upload(
        self, draft: str, size_bytes: int, *, content_type: str | None = None
    ) -> records.Body:
        """Stage the content of the draft of an upload, which the caller holds, as a body.

        The draft remains and does not change with the body. Raises StorageError.
        """

    async def discard(self, body: records.Body) -> None:
        """Remove a staged body. Idempotent; has no effect on a body that was committed.

        Raises StorageError.
        """

    async def commit(self, write: records.Write) -> records.CommitOutcome:
        """Check the preconditions of the write and apply it, atomically and durably.

        A put that contradicts its ``creates``, a delete of a missing resource, a member without its
        container and the deletion of a container that still has members are conflicts, too. Writes
        may share a transaction, but each succeeds or fails on its own. Writes to one store object
        are decided in the order of the calls, so a write may have the result of an earlier, pending
        one as a precondition. Raises StorageError if nothing was changed, also for a write that is
        invalid in any state (a resource put twice, a changed kind, a blob that is not staged), and
        Overloaded if too many writes are waiting.
        """

    def interprocess_lock(self, path: ResourcePath) -> InterprocessLock | None:
        """A turn to write to the resource, which saves processes from writing to it at the same
        time; ``None`` if the engine has none. The outcome of writes does not depend on it."""

    async def changes_before(
        self, sequence: int, *, first: int, below: ResourcePath, limit: int
    ) -> Sequence[records.LoggedChange]:
        """The rows of the change log about a container and everything below it, the newest first.

        Their sequence numbers are less than ``sequence`` and at least ``first``: every row between
        is read, since the log has no order by path. Raises StorageError.
        """

    async def deleted_acls(
        self, write: records.Version, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, records.DeletedAcl]:
        """The ACLs among ``paths`` that the write of that version deleted, with their content.

        Available for as long as the write is in the change log. Raises StorageError.
        """


class PodRegistry(Protocol):
    """The pods. A :class:`PodRecord` in a write creates one."""

    async def read_pod(self, name: str) -> records.PodRecord | None:
        """The pod of that name, compared case-insensitively (A-91)."""

    async def list_pods(self, *, after: str = "", limit: int) -> Sequence[records.PodRecord]:
        """Up to ``limit`` pods by name, after the name ``after``; names are compared as in
        :meth:`read_pod`. Raises StorageError."""

    async def used_bytes(self, name: str) -> int:
        """The bytes that a pod is charged for (``storage/quota.py``): its resources and its
        charges; 0 if there is no such pod."""

    async def pod_totals(self, *, default_quota_bytes: int) -> records.PodTotals:
        """Sums over all pods. ``default_quota_bytes`` is the quota of each pod that has none of its
        own; 0 for none. Raises StorageError."""

    async def put_charge(self, charge: str, *, root: ResourcePath, size_bytes: int) -> None:
        """Set a named charge of the storage with that root container, for data outside resources.

        Replaces an earlier charge of that name; 0 bytes remove it. Raises StorageError.
        """

    async def list_charges(self, root: ResourcePath) -> Mapping[str, int]:
        """The charges of a storage besides its resources. Raises StorageError."""

    async def remove_pod(self, removal: records.PodRemoval) -> bool:
        """Remove a pod entirely; False if there is none of that name.

        One transaction removes the pod, its tokens, its entries and its ACLs, so that nobody has
        access any more. The other resources follow in batches if there are many; the next sweep
        continues if the process ends before that. Each resource gets a row in the change log.
        Raises StorageError or Overloaded, and has changed nothing then.
        """


class EntryRegistry(Protocol):
    """Small records of other parts of the server, created and removed by records in a write."""

    async def read_entry(self, entry: records.EntryId, *, now_ms: int) -> records.Entry | None:
        """The entry, ``None`` also once it has expired. Raises StorageError."""

    async def list_entries(
        self, kind: str, *, owner: str | None = None, after: str = "", limit: int, now_ms: int
    ) -> Sequence[records.Entry]:
        """Up to ``limit`` unexpired entries of a kind, in the byte order of their IDs, after
        ``after``; only those of ``owner`` if given. Raises StorageError."""


class EntryCounts(Protocol):
    """The number of entries, for limits."""

    async def count_entries(self, kind: str, *, at_most: int) -> int:
        """The number of entries of a kind, or ``at_most`` if there are more.

        May include expired entries that have not been swept yet. Raises StorageError.
        """


class TokenRegistry(Protocol):
    """The issued simple tokens. Records in a write issue and revoke them."""

    def registries_version(self) -> int:
        """A number that changes when a token or pod may have been changed by any process.

        While it is unchanged, the tokens and pods that were read after it are still current. Raises
        StorageError.
        """

    async def read_token(self, token_id: str) -> records.TokenRecord | None: ...

    async def list_tokens(self, *, pod: str | None = None) -> Sequence[records.TokenRecord]:
        """All tokens, or those of one pod, newest first."""


class FeatureRows(Protocol):
    """The tables of features (:mod:`podstead.storage.schema`). Records in a write change them."""

    async def fetch(self, select: str, *values: object) -> Sequence[schema.Row]:
        """The rows of a SELECT in the SQL that both engines understand, in which ``%s`` stands for
        each value. For few rows: all of them are in memory. Raises StorageError."""


class FormerStates(Protocol):
    """Former states of resources (:mod:`podstead.storage.former_states`), which :meth:`FeatureRows
    .fetch` reads as well."""

    async def open_former(self, state: former_states.FormerState) -> OpenBody | None:
        """Open the body of a former state; ``None`` if it is no longer kept. Raises
        StorageError."""

    async def remove_garbage(self, *, now_ms: int) -> bool:
        """Remove the large bodies of removed states now, except those that are being read, instead
        of at the next sweep; false if a backup is being made, which needs all of them. Raises
        StorageError, Overloaded."""


class RateCounters(Protocol):
    """Token buckets shared by all workers (A-180)."""

    async def take(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        """Take a token from the bucket ``key`` (see :class:`~podstead.storage.buckets.BucketRate`).

        Returns ``None`` on success, otherwise the whole seconds until a token is available. Raises
        StorageError, Overloaded.
        """

    async def wait_s(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        """What :meth:`take` would return, without taking a token."""

    async def give_back(self, key: str, *, per_s: float) -> None:
        """Return a token that was taken from the bucket. Raises StorageError, Overloaded."""


class ReplayCache(Protocol):
    """Remembers what may be used only once, such as DPoP proofs; shared by all workers (A-104).

    Survives a crash of the server, but not of the machine.
    """

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        """Record the use of ``key`` until ``until_ms``; False if it was used before.

        Raises StorageError, and Overloaded if the cache is full.
        """

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        """Whether ``key`` has been used. Raises StorageError, Overloaded."""


class UploadDraft(Protocol):
    """The draft of an upload, which no other request uses. Calls must not overlap."""

    def open(self, size_bytes: int) -> OpenBody:
        """The bytes of a draft of that size."""

    async def truncate(self, size_bytes: int) -> None:
        """Remove what follows the first ``size_bytes``.

        Raises :class:`~podstead.storage.uploads.DraftGone` if they are not there.
        """

    async def append(self, piece: bytes) -> None:
        """Append bytes, of which some may be buffered. Raises StorageError."""

    async def sync(self) -> None:
        """Flush all bytes to disk. Raises StorageError."""

    async def wanted(self) -> None:
        """Wait until another request, perhaps of another worker, waits for the draft."""


class UploadDrafts(Protocol):
    """The drafts of resumable uploads, bodies that grow over several requests.

    Each is in use while there is an entry of the kind
    :data:`~podstead.storage.uploads.UPLOADS` with its name as the key.
    """

    async def create(self, name: str) -> None:
        """Create an empty draft. Raises StorageError."""

    def hold(self, name: str) -> AbstractAsyncContextManager[UploadDraft]:
        """Lock a draft.

        Raises :class:`~podstead.storage.uploads.DraftGone`, Overloaded if it stays locked, and
        StorageError.
        """

    async def remove(self, name: str) -> None:
        """Remove a draft, if it exists. Raises StorageError."""


class Store(
    ResourceStore,
    PodRegistry,
    TokenRegistry,
    EntryRegistry,
    EntryCounts,
    FeatureRows,
    FormerStates,
    RateCounters,
    ReplayCache,
    Protocol,
):
    """A complete storage engine with its life cycle."""

    @property
    def prefetch(self) -> dependencies.ReadAhead | None:
        """Reads for a request ahead; ``None`` where a read costs too little for that."""

    @property
    def uploads(self) -> UploadDrafts:
        """The drafts of resumable uploads."""

    async def open(self, *, for_reading: bool = False) -> None:
        """Open for this process; the schema must already be current. Raises StorageError.

        A store that is open ``for_reading`` opens what writes need with the first of them.
        """

    async def close(self) -> None:
        """Finish pending writes and release all resources."""

    def inspect(self) -> Inspection:
        """Read everything that is stored, as of this moment; for backups and checks, which block.

        The store need not be open. Raises SchemaTooNew, StorageError.
        """

    async def database_bytes(self) -> int:
        """What the records take on disk, with small bodies. Raises StorageError."""

    async def database_version(self) -> tuple[str, int]:
        """The name and version of the database, and the number of its newest migration. Raises
        StorageError."""

    def removals_locked(self) -> AbstractContextManager[None]:
        """Keep large bodies from being removed by any process, for a backup or a check, which may
        block.

        The store need not be open. Raises StorageError.
        """

    def commit_figures(self) -> CommitFigures:
        """What this process has committed so far. Raises StorageError."""

    async def recount(self) -> None:
        """Correct who lists what, the numbers of members, and what storages are charged for.

        They are right unless the store was damaged. Raises StorageError.
        """

    async def take_orphan_body(self, path: ResourcePath) -> bytes | None:
        """Remove and return a small body that belongs to no resource, if there is one at the path.

        Raises StorageError.
        """

    async def compact(self, *, now_ms: int, is_alone: bool) -> Compaction:
        """Sweep everything but the change log, and give back as much space as possible.

        ``is_alone`` states that no other process uses the store, so that its files may be written
        anew. Raises StorageError.
        """

    async def sweep_own_files(self, *, now_ms: int) -> None:
        """Remove what this node alone has on its disk and nobody needs. Raises StorageError."""

    async def sweep(self, *, now_ms: int) -> None:
        """Remove what is no longer needed, and return free pages to the file system.

        That is: unreferenced blobs that nobody reads, drafts after their grace period, the rest of
        deleted pods, full rate buckets, expired uses and entries, and old rows of the change log.
        """


class Compaction(Enum):
    """What compacting did to the file or files that the records are in."""

    REWRITTEN = "rewritten"
    """They were written anew, as small as possible."""
    SHRUNK = "shrunk"
    """Free parts were given back, while other processes went on using them."""
    VACUUMED = "vacuumed"
    """What was free was made available for new content; files of the database become smaller only
    where the free space is at their end."""
    NEEDS_TO_BE_ALONE = "needs-to-be-alone"
    """They can only be made smaller while no server runs."""
    NEEDS_SPACE = "needs-space"
    """There is not enough free space for a second copy; free parts were given back."""
