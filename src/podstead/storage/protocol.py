"""What must a storage engine offer? The one protocol over which everything else is written.

Absence is ``None``, a conflict is a value (:class:`~podstead.storage.records.VersionConflict`),
trouble is raised as :class:`~podstead.core.errors.StorageError` and never read as absence. All
operations may be called from many tasks and many worker processes at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import (
    Body,
    CommitOutcome,
    DeletedAcl,
    Entry,
    EntryId,
    LoggedChange,
    Metadata,
    PodRecord,
    PodRemoval,
    TokenRecord,
    Version,
    Write,
)

Snapshot = Mapping[ResourcePath, Metadata | None]
"""Metadata of several paths as of one moment; ``None`` where nothing is stored."""


class OpenBody(Protocol):
    """The bytes of one version of a resource; stays readable although the resource changes."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def content(self) -> bytes | None:
        """The whole body if it is small and in memory, else ``None``."""

    @property
    def file_path(self) -> str | None:
        """A local file holding exactly the body, which lives at least ten minutes longer than
        the version it belongs to; ``None`` if there is none."""

    def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Stream the bytes from ``start`` up to, not including, ``end``. Raises StorageError."""


async def whole_body(body: OpenBody) -> bytes:
    """All bytes of a body whose size is known to be small, such as that of an RDF document.
    Raises StorageError."""
    if body.content is not None:
        return body.content
    return b"".join([chunk async for chunk in body.chunks()])


class ChangeSignal(Protocol):
    """Tells one listener that the change log may have grown."""

    async def wait(self) -> None:
        """Return when something may have been committed since this last returned, or since it was
        made; and after about a second anyhow, should a sign be lost. For one task."""

    def close(self) -> None:
        """Listen no more. Idempotent."""


class DocumentSource(Protocol):
    """Where stored documents are read; every store is one."""

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        """Read the metadata of each path, all as of one moment. Raises StorageError."""

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        """Open the body of exactly this version; ``None`` if it is no longer the current one.

        Raises StorageError, also when the version is current and its bytes are missing or are no
        longer those that were stored.
        """


class ResourceStore(DocumentSource, Protocol):
    """Resources, their bodies and the change log."""

    def data_version(self) -> int | None:
        """A number that is another after any commit by any worker; ``None`` where the engine
        cannot tell cheaply. While it stands, everything read before is still so."""

    async def list_members(
        self, container: ResourcePath, *, after: ResourcePath | None = None, limit: int
    ) -> Sequence[Metadata]:
        """Up to ``limit`` members in the byte order of their paths, from behind ``after``."""

    async def stage_body(self, chunks: AsyncIterator[bytes]) -> Body:
        """Take a body in, durably if it is large; errors of ``chunks`` pass through and leave
        nothing. A staged blob belongs to the first write that is committed with it; one that no
        write takes is given back with :meth:`discard`, and given up after an hour otherwise.
        Raises StorageError."""

    async def discard(self, body: Body) -> None:
        """Give a staged body back. Idempotent; a no-op for a body that a commit took. Raises
        StorageError."""

    async def commit(self, write: Write) -> CommitOutcome:
        """Check everything the write relied on and apply it, atomically and durably.

        A put that does not find what ``creates`` says, a delete of what is not there, a member
        without its container and a container deleted before its members are conflicts too, as if
        the write had relied on the opposite. May share one transaction with other writes; each
        stands or falls alone. Writes given to one store are decided in that order, so a write may
        rely on what the one given before it is to leave. Raises StorageError (nothing was
        changed), also for a write that no state makes sound (a resource put twice, a changed kind,
        a blob that is not staged), or Overloaded when too many writes are waiting.
        """

    async def changes_after(self, sequence: int, *, limit: int) -> Sequence[LoggedChange]:
        """Rows of the change log with a greater sequence number, in order. Raises StorageError."""

    async def newest_sequence(self) -> int:
        """The sequence number of the newest row that the change log has had, 0 if it never had
        one. Raises StorageError."""

    def listen(self) -> ChangeSignal:
        """Begin to be told when there may be new rows of the change log, by whatever process."""

    async def deleted_acls(
        self, write: Version, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, DeletedAcl]:
        """Which of ``paths`` were access rules that the write of that version deleted, and what
        they said; as long as the change log has the write. Raises StorageError."""


class PodRegistry(Protocol):
    """Which pods exist. Pods are created by a :class:`PodRecord` in a write."""

    async def read_pod(self, name: str) -> PodRecord | None:
        """The pod of that name, compared case-insensitively (A-91)."""

    async def list_pods(self) -> Sequence[PodRecord]:
        """All pods, by name."""

    async def used_bytes(self, name: str) -> int:
        """The bytes that a pod is charged for (``storage/quota.py``): its resources, replaced and
        deleted blobs until they are removed, and its charges; 0 for a pod that does not exist."""

    async def put_charge(self, charge: str, *, root: ResourcePath, size_bytes: int) -> None:
        """Charge the storage with that root container for something that is no resource, under a
        name by which it is charged for once; 0 bytes end the charge. Raises StorageError."""

    async def list_charges(self, root: ResourcePath) -> Mapping[str, int]:
        """The charges of a storage besides its resources. Raises StorageError."""

    async def remove_pod(self, removal: PodRemoval) -> bool:
        """Remove a pod whole; False if there is none of that name.

        It is out of everybody's reach at once: the pod, its tokens, its entries and its access
        rules go atomically and durably. Where there is much more the rest follows in steps; what
        a process leaves that ends meanwhile, the next sweep removes. Each resource gets a row in
        the change log. Raises StorageError or Overloaded; then nothing was changed.
        """


class EntryRegistry(Protocol):
    """Small records of other parts of the server. Made and removed by records in a write."""

    async def read_entry(self, entry: EntryId, *, now_ms: int) -> Entry | None:
        """The entry, ``None`` also once it has expired. Raises StorageError."""

    async def list_entries(
        self, kind: str, *, owner: str | None = None, after: str = "", limit: int, now_ms: int
    ) -> Sequence[Entry]:
        """Up to ``limit`` entries of a kind that have not expired, of one owner if named, in the
        byte order of their names, from behind ``after``. Raises StorageError."""


class EntryCounts(Protocol):
    """How many entries there are, for those that bound them."""

    async def count_entries(self, kind: str, *, at_most: int) -> int:
        """The number of entries of a kind, or ``at_most`` if there are more. Some of them may have
        expired and not been swept yet. Raises StorageError."""


class TokenRegistry(Protocol):
    """Which simple tokens were issued. Issued and revoked by records in a write."""

    async def read_token(self, token_id: str) -> TokenRecord | None: ...

    async def list_tokens(self, *, pod: str | None = None) -> Sequence[TokenRecord]:
        """All tokens, of one pod if named, newest first."""


class RateCounters(Protocol):
    """Token buckets shared by all workers (A-180)."""

    async def take(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        """Take one from the bucket ``key`` that holds ``capacity`` and refills ``per_s`` a second.

        Returns ``None`` if one was there, else the whole seconds until one will be. Buckets that
        are full again are forgotten.
        """

    async def wait_s(self, key: str, *, capacity: int, per_s: float, now_ms: int) -> int | None:
        """What :meth:`take` would return, without taking one."""


class ReplayCache(Protocol):
    """What may be used once only, such as the proof of a request; shared by all workers (A-104).

    Outlives a crash of the server, not one of the machine.
    """

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        """Note the use of ``key`` until ``until_ms``; False if it is noted already.

        Raises StorageError, and Overloaded when there is no room for more.
        """

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        """Whether a use of ``key`` is noted. Raises StorageError, Overloaded."""


class Store(
    ResourceStore,
    PodRegistry,
    TokenRegistry,
    EntryRegistry,
    EntryCounts,
    RateCounters,
    ReplayCache,
    Protocol,
):
    """Everything one engine offers, with its life cycle."""

    async def open(self) -> None:
        """Open for this process; the schema must already be current. Raises StorageError."""

    async def close(self) -> None:
        """Finish what was acknowledged and release everything."""

    async def sweep(self, *, now_ms: int) -> None:
        """Remove blobs that nothing refers to any more and that are past their grace time, what is
        left of pods that are gone, rate buckets that are full again, uses and entries that have
        expired, and change-log rows past their age; and give the disk back what is free."""
