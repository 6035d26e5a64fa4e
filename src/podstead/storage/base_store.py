"""What the stores of both engines have in common.

An engine opens its connections, reads metadata and commits writes in its own way. Whatever else is
read is one statement here, in the SQL that both understand, and whatever else is written is one of
the engine's functions, in a transaction of its writer.
"""

from __future__ import annotations

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypedDict, TypeVar, Unpack

from podstead.core.errors import Overloaded, StorageError
from podstead.core.histogram import Histogram
from podstead.core.identifiers import ResourcePath
from podstead.storage import disk_space, former_states, maintenance, protocol, steps, tables
from podstead.storage import records as storage_records
from podstead.storage.blobs.body_store import BodyMissing, BodyStore, BodyStoreFactory, ContentBody
from podstead.storage.blobs.local import LocalBlobs
from podstead.storage.blobs.staging import DEFAULT_INLINE_BODY_BYTES, BodyStaging
from podstead.storage.buckets import BucketRate
from podstead.storage.layout import RootLayout
from podstead.storage.open_body import OpenBody
from podstead.storage.removal import PodRemovals
from podstead.storage.schema import Row
from podstead.storage.state import folded

if TYPE_CHECKING:  # for commands only
    from podstead.storage.inspection import Inspection

logger = logging.getLogger("podstead.storage")

DELETED_ACL_MS: Final = 24 * 60 * 60 * 1000
"""How long the content of deleted ACLs is kept. It is needed while disconnected subscribers are
still notified of the deletion, and not kept any longer because ACLs name people."""

DEFAULT_CHANGE_LOG_DAYS: Final = 30
DEFAULT_MAX_WAITING: Final = 1024

_MS_PER_DAY: Final = 24 * 60 * 60 * 1000

_LIST_ACLS: Final = (
    # The number is written out, so that the index of these rows is used.
    f"SELECT {tables.METADATA} FROM resources"  # noqa: S608 - our columns
    f" WHERE kind = {storage_records.ResourceKind.ACL.value} AND path > %s ORDER BY path LIMIT %s"
)
_CHANGES_AFTER: Final = (
    f"SELECT {tables.CHANGES.names} FROM changes"  # noqa: S608 - our columns
    " WHERE sequence > %s ORDER BY sequence LIMIT %s"
)
_CHANGES_BEFORE: Final = (
    f"SELECT {tables.CHANGES.names} FROM changes"  # noqa: S608 - our columns
    " WHERE sequence < %s AND sequence >= %s AND path >= %s AND path < %s"
    " ORDER BY sequence DESC LIMIT %s"
)
_NEWEST_SEQUENCE: Final = "SELECT value FROM counters WHERE name = 'changes'"
_LIST_PODS: Final = (
    f"SELECT {tables.POD} FROM pods"  # noqa: S608 - our columns
    " WHERE folded_name > %s ORDER BY folded_name LIMIT %s"
)
_USED_BYTES: Final = (
    "SELECT s.used_bytes FROM pods p JOIN storages s ON s.root = p.root WHERE p.folded_name = %s"
)
_POD_TOTALS: Final = (
    "SELECT count(*), CAST(coalesce(sum(used), 0) AS BIGINT),"
    " CAST(coalesce(sum(quota), 0) AS BIGINT),"
    " count(*) FILTER (WHERE quota > 0 AND used * 10 >= quota * 9) FROM ("
    " SELECT coalesce(s.used_bytes, 0) AS used, coalesce(p.quota_bytes, %s) AS quota"
    " FROM pods p LEFT JOIN storages s ON s.root = p.root) each_pod"
)
_LIST_CHARGES: Final = "SELECT charge, size_bytes FROM charges WHERE root = %s"
_READ_ENTRY: Final = f"SELECT {tables.ENTRIES.names} FROM entries WHERE entry = %s"  # noqa: S608
_LIST_ENTRIES: Final = (
    f"SELECT {tables.ENTRIES.names} FROM entries"  # noqa: S608 - our columns
    " WHERE entry > %s AND entry < %s AND (expires_ms IS NULL OR expires_ms > %s)"
    " ORDER BY entry LIMIT %s"
)
_LIST_ENTRIES_OF: Final = _LIST_ENTRIES.replace(" ORDER", " AND owner = %s ORDER")
_COUNT_ENTRIES: Final = (
    "SELECT count(*) FROM (SELECT 1 FROM entries WHERE entry > %s AND entry < %s LIMIT %s) AS found"
)
_NEWEST_FIRST: Final = "ORDER BY issued_s DESC, token_id"
_LIST_TOKENS: Final = f"SELECT {tables.TOKENS.names} FROM tokens {_NEWEST_FIRST}"  # noqa: S608
_LIST_TOKENS_OF: Final = f"SELECT {tables.TOKENS.names} FROM tokens WHERE pod = %s {_NEWEST_FIRST}"  # noqa: S608

Found = TypeVar("Found")
Statements = Callable[..., Any]
"""Runs statements on the connection that is its first argument."""


class EngineWriter(Protocol):
    """The group commit of an engine."""

    batches: Histogram
    commits_s: Histogram

    @property
    def waiting(self) -> int: ...

    def run(self, statements: Statements, /) -> Awaitable[Any]:
        """Run statements in the transaction of a batch. Raises StorageError or Overloaded."""


class EngineReader(Protocol):
    """The reads of an engine that both have in their own way."""

    async def read_content(
        self, path: ResourcePath, version: storage_records.Version
    ) -> tuple[bytes | None, bytes | None] | None:
        """Small body and its SHA-256 at the path, ``None`` if its version is another one by now.

        The first versions of the SQLite engine stored no hash. Raises StorageError.
        """


class EngineEphemeral(Protocol):
    """The rate buckets and used keys of an engine."""

    async def take(self, bucket: str, rate: BucketRate, *, now_ms: int) -> int | None:
        """Take a token; ``None`` on success, otherwise the whole seconds to wait."""

    async def wait_s(self, bucket: str, rate: BucketRate, *, now_ms: int) -> int | None:
        """What :meth:`take` would return, without taking a token."""

    async def give_back(self, bucket: str, per_s: float) -> None:
        """Return a token that was taken."""

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        """Record a use; False if the key was used before."""

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        """Whether the key has been used."""


class EngineParts(Protocol):
    """The parts of a store while it is open."""

    @property
    def reader(self) -> EngineReader: ...

    @property
    def writer(self) -> EngineWriter: ...

    @property
    def blobs(self) -> BodyStore: ...

    @property
    def staging(self) -> BodyStaging: ...

    @property
    def ephemeral(self) -> EngineEphemeral: ...

    def notify(self) -> None:
        """Tell listeners that the change log has grown."""


class StoreOptions(TypedDict, total=False):
    """What may be said of any store."""

    inline_body_bytes: int
    """Bodies of at most so many bytes are stored in the database."""
    change_log_days: int
    max_waiting: int
    """While so many writes wait for their commit, further ones are refused."""
    space: disk_space.DiskSpace | None
    """Decides whether there is enough space for new content."""
    bodies: BodyStoreFactory | None
    """Makes the store of large bodies, if they are not kept in files below the root."""


class BaseStore(ABC):
    """Implements most of Store."""

    _maintenance: ClassVar[maintenance.Maintenance]
    _removals: ClassVar[PodRemovals]
    _run_steps: ClassVar[Statements]
    """Runs steps on a connection."""

    def __init__(
        self, layout: RootLayout, *, is_shared: bool = False, **options: Unpack[StoreOptions]
    ) -> None:
        """Does no I/O. The root is shared with other nodes if it ``is_shared``."""
        space = options.get("space") or disk_space.DiskSpace(layout.root)
        self._space = space
        self._layout = layout
        self._inline_body_bytes = options.get("inline_body_bytes", DEFAULT_INLINE_BODY_BYTES)
        days = options.get("change_log_days", DEFAULT_CHANGE_LOG_DAYS)
        self._change_log_ms = days * _MS_PER_DAY
        self._max_waiting = options.get("max_waiting", DEFAULT_MAX_WAITING)
        self._new_bodies = options.get("bodies") or (
            lambda _: LocalBlobs(layout.blobs, space, is_shared=is_shared)
        )

    # --- what each engine has -----------------------------------------------------------------

    @abstractmethod
    def _use(self) -> EngineParts:
        """The parts of the open store. Raises StorageError."""

    @abstractmethod
    def _use_noted(self) -> EngineParts:
        """The same for what an engine notes of a request, to read it ahead for the next one."""

    @abstractmethod
    def _all(
        self, select: str, values: Sequence[Any], make: Callable[[Row], Found]
    ) -> Coroutine[Any, Any, list[Found]]:
        """What ``make`` makes of each row, none of them older than the call. Raises
        StorageError."""

    def _all_slowly(
        self, select: str, values: Sequence[Any], make: Callable[[Row], Found]
    ) -> Coroutine[Any, Any, list[Found]]:
        """The same for a statement that may take long."""
        return self._all(select, values, make)

    @abstractmethod
    async def _sweep_uses(self, now_ms: int) -> None:
        """Remove full rate buckets and expired uses."""

    _select_version: str

    async def database_version(self) -> tuple[str, int]:
        (found,) = await self._all(self._select_version, (), _pair)
        return found

    # --- bodies -------------------------------------------------------------------------------

    @property
    def uploads(self) -> protocol.UploadDrafts:
        return self._use().blobs.uploads

    async def open_body(self, metadata: storage_records.Metadata) -> OpenBody | None:
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
        return _checked_body(*current, metadata.size_bytes)

    async def open_former(self, state: former_states.FormerState) -> OpenBody | None:
        opened = self._use()
        found = await self.fetch(former_states.FIND, *state.drop.key)
        if not found:
            return None
        if state.blob is not None:
            return await opened.blobs.open(state.blob, state.size_bytes)
        content, sha256 = found[0]
        return _checked_body(content, sha256, state.size_bytes)

    def stage_body(
        self, content: bytes | AsyncIterator[bytes], *, content_type: str | None = None
    ) -> Coroutine[Any, Any, storage_records.Body]:
        return self._use().staging.stage(content, content_type)

    def stage_upload(
        self, draft: str, size_bytes: int, *, content_type: str | None = None
    ) -> Coroutine[Any, Any, storage_records.Body]:
        return self._use().staging.stage_upload(draft, size_bytes, content_type)

    async def stage_copies(
        self, resources: Sequence[storage_records.Metadata]
    ) -> Mapping[ResourcePath, storage_records.StagedBlob]:
        return await self._use().staging.stage_copies(resources)

    async def discard(self, body: storage_records.Body) -> None:
        if isinstance(body, storage_records.StagedBlob):
            await self.discard_all([body])

    async def discard_all(self, bodies: Sequence[storage_records.StagedBlob]) -> None:
        await self._use().staging.discard([body.blob for body in bodies])

    # --- reads --------------------------------------------------------------------------------

    def list_acls(
        self, *, after: ResourcePath | None = None, limit: int
    ) -> Coroutine[Any, Any, list[storage_records.Metadata]]:
        return self._all(_LIST_ACLS, (after or "", limit), tables.metadata_of)

    def changes_after(
        self, sequence: int, *, limit: int
    ) -> Coroutine[Any, Any, list[storage_records.LoggedChange]]:
        return self._all(_CHANGES_AFTER, (sequence, limit), tables.change_of)

    def changes_before(
        self, sequence: int, *, first: int, below: ResourcePath, limit: int
    ) -> Coroutine[Any, Any, list[storage_records.LoggedChange]]:
        values = (sequence, first, below, tables.end_of(below), limit)
        return self._all_slowly(_CHANGES_BEFORE, values, tables.change_of)

    async def newest_sequence(self) -> int:
        found = await self._all(_NEWEST_SEQUENCE, (), _number)
        if not found:
            raise StorageError("The store could not be read")
        return found[0]

    def list_pods(
        self, *, after: str = "", limit: int
    ) -> Coroutine[Any, Any, list[storage_records.PodRecord]]:
        return self._all(_LIST_PODS, (folded(after), limit), tables.pod_of)

    async def used_bytes(self, name: str) -> int:
        found = await self._all(_USED_BYTES, (folded(name),), _number)
        return found[0] if found else 0

    async def pod_totals(self, *, default_quota_bytes: int) -> storage_records.PodTotals:
        (found,) = await self._all_slowly(_POD_TOTALS, (default_quota_bytes,), _totals_of)
        return found

    async def list_charges(self, root: ResourcePath) -> Mapping[str, int]:
        return dict(await self._all(_LIST_CHARGES, (root,), _pair))

    async def read_entry(
        self, entry: storage_records.EntryId, *, now_ms: int
    ) -> storage_records.Entry | None:
        for found in await self._all(_READ_ENTRY, (entry,), tables.entry_of):
            return None if found.has_expired(now_ms) else found
        return None

    def list_entries(
        self, kind: str, *, owner: str | None = None, after: str = "", limit: int, now_ms: int
    ) -> Coroutine[Any, Any, list[storage_records.Entry]]:
        # "0" is the character after the slash that ends the kind.
        values = (max(f"{kind}/", after), f"{kind}0", now_ms)
        if owner is None:
            return self._all(_LIST_ENTRIES, (*values, limit), tables.entry_of)
        return self._all(_LIST_ENTRIES_OF, (*values, owner, limit), tables.entry_of)

    async def count_entries(self, kind: str, *, at_most: int) -> int:
        (count,) = await self._all(_COUNT_ENTRIES, (f"{kind}/", f"{kind}0", at_most), _number)
        return count

    def list_tokens(
        self, *, pod: str | None = None
    ) -> Coroutine[Any, Any, list[storage_records.TokenRecord]]:
        if pod is None:
            return self._all_slowly(_LIST_TOKENS, (), tables.token_of)
        return self._all(_LIST_TOKENS_OF, (pod,), tables.token_of)

    def fetch(self, select: str, *values: object) -> Coroutine[Any, Any, list[Row]]:
        return self._all(select, values, tuple)

    # --- ephemeral records --------------------------------------------------------------------

    def take(
        self, key: str, *, capacity: int, per_s: float, now_ms: int
    ) -> Coroutine[Any, Any, int | None]:
        return self._use().ephemeral.take(key, BucketRate(capacity, per_s), now_ms=now_ms)

    def wait_s(
        self, key: str, *, capacity: int, per_s: float, now_ms: int
    ) -> Coroutine[Any, Any, int | None]:
        return self._use().ephemeral.wait_s(key, BucketRate(capacity, per_s), now_ms=now_ms)

    def give_back(self, key: str, *, per_s: float) -> Coroutine[Any, Any, None]:
        return self._use().ephemeral.give_back(key, per_s)

    def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> Coroutine[Any, Any, bool]:
        return self._use().ephemeral.use_once(key, until_ms=until_ms, now_ms=now_ms)

    def is_used(self, key: bytes, *, now_ms: int) -> Coroutine[Any, Any, bool]:
        return self._use().ephemeral.is_used(key, now_ms=now_ms)

    # --- changes without a write --------------------------------------------------------------

    async def put_charge(self, charge: str, *, root: ResourcePath, size_bytes: int) -> None:
        put_charge = self._maintenance.put_charge
        await self._step(partial(put_charge, charge, root=root, size_bytes=size_bytes))

    async def take_orphan_body(self, path: ResourcePath) -> bytes | None:
        return await self._step(partial(self._maintenance.take_orphan_body, path))

    async def remove_garbage(self, *, now_ms: int) -> bool:
        return await self._use().staging.sweep_garbage(now_ms=now_ms)

    async def remove_pod(self, removal: storage_records.PodRemoval) -> bool:
        opened = self._use()
        if not await self._step(partial(self._removals.begin, removal)):
            return False
        opened.notify()
        # The first transaction has removed the pod. The rest only frees space, so a failure is not
        # reported to the caller.
        try:
            await self._finish_removals()
            await self.remove_garbage(now_ms=removal.at_ms)
        except (StorageError, Overloaded):
            logger.exception("The rest of a pod could not be removed; the next sweep will continue")
        return True

    def commit_figures(self) -> protocol.CommitFigures:
        writer = self._use().writer
        return protocol.CommitFigures(writer.waiting, writer.batches, writer.commits_s)

    def _step(self, begin: steps.Begin[Found]) -> Awaitable[Found]:
        return self._run(partial(self._run_steps, begin=begin))

    def _run(self, statements: Statements) -> Awaitable[Any]:
        return self._use().writer.run(statements)

    # --- maintenance --------------------------------------------------------------------------

    async def sweep(self, *, now_ms: int) -> None:
        await self._sweep_current(now_ms)
        oldest_ms = now_ms - self._change_log_ms
        await self._step_all(partial(self._maintenance.delete_old_changes, before_ms=oldest_ms))
        await self._step_all(partial(self._maintenance.delete_old_acls, before_ms=oldest_ms))
        clear = self._maintenance.clear_old_acl_content
        await self._step_all(partial(clear, before_ms=now_ms - DELETED_ACL_MS))

    async def _sweep_current(self, now_ms: int) -> None:
        """Sweep everything but the change log."""
        staging = self._use().staging
        await staging.sweep(now_ms=now_ms)
        await staging.sweep_uploads(partial(self.read_entry, now_ms=now_ms), now_ms=now_ms)
        await self._finish_removals()
        await self._sweep_uses(now_ms)
        await self._step_all(partial(self._maintenance.delete_expired_entries, now_ms=now_ms))

    async def _finish_removals(self) -> None:
        """Remove the rest of deleted pods in batches."""
        while await self._step(self._removals.resume):
            self._use().notify()

    async def _step_all(self, begin: steps.Begin[bool]) -> None:
        """Run batches until there is no more to do. Each removes a limited number of rows in a
        transaction of its own, so that requests can run in between."""
        while await self._step(begin):
            pass


def _checked_body(content: bytes | None, sha256: bytes | None, size_bytes: int) -> ContentBody:
    """A small body, if it is what was stored. Raises StorageError."""
    if content is None or len(content) != size_bytes:
        raise StorageError("A body is missing or damaged")
    if sha256 is not None and hashlib.sha256(content).digest() != sha256:
        raise StorageError("A body is damaged: its hash does not match")
    return ContentBody(content)


def _number(row: Row) -> int:
    return int(row[0])


def _pair(row: Row) -> tuple[str, int]:
    return str(row[0]), int(row[1])


def _totals_of(row: Row) -> storage_records.PodTotals:
    return storage_records.PodTotals(*row)


def checked(records: Inspection) -> Inspection:
    """The same, unless its schema is refused."""
    try:
        records.check_current()
    except BaseException:
        records.close()
        raise
    return records
