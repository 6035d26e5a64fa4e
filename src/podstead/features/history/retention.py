"""Which former states are kept, for how long, and within which room.

Each write of a request keeps the states that it ends, without reading anything. What is kept for
long enough is removed in the background, in small writes: where one of them is not committed, the
next sweep finds the same again. What is removed follows from the stored rows and the time alone.

Former states are not charged to the quota, so that deleting something never fails. They use what
the quota and the disk leave free: the oldest are removed while there is less. Between two sweeps,
each worker counts what it writes to a storage, and looks for room when that is much; while it does,
replaced states of this storage are not kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

import msgspec
from msgspec.structs import replace

from podstead.core.background import Background, cancel_and_wait
from podstead.core.date_times import DAY_MS
from podstead.core.identifiers import ACL_SUFFIX, ResourcePath, storage_root
from podstead.core.identity import Identity
from podstead.storage import records as storage_records
from podstead.storage.capacity import PodQuotas
from podstead.storage.former_states import FORMER_STATE, FormerState, former_state_of
from podstead.storage.quota import fixed_charge
from podstead.storage.record_store import RecordKind, RecordStore
from podstead.wac import effective, modes

logger = logging.getLogger("podstead.history")

MAX_VERSIONS: Final = 100
"""How many versions of a document are kept at most: of the last day, besides those before the last
so many runs of writes of one agent through one application; and of the time before."""
LOOK_AFTER_BYTES: Final = 16 * 1024 * 1024
"""After so much has been written to a storage, a worker looks whether there is room."""
PAGE: Final = 500
"""How many states are looked at before other requests run."""
MAX_DISK_STEPS: Final = 20
"""How often one request that finds the disk full looks for the storage with most states."""
LOOK_S: Final = 5.0
"""After so long, a worker knows what an owner has chosen in another one."""
CREATIONS_OF_BATCH: Final = 500
PAGE_OF_BATCHES: Final = 20
LOOKS_PER_STORING: Final = 12
MAX_CREATIONS: Final = 5_000
"""How many creations in one pod wait to be stored; of more, it is not known who made them."""
BATCH: Final = 100
"""How many states one write removes."""

_ROOTS: Final = "SELECT root FROM former_states WHERE root > %s ORDER BY root LIMIT 1"
_BACKWARDS: Final = (
    f"SELECT {FORMER_STATE} FROM former_states WHERE root = %s"  # noqa: S608 - our columns
    " AND (path, modified_ms, version) < (%s, %s, %s)"
    " ORDER BY path DESC, modified_ms DESC, version DESC LIMIT %s"
)
_OLDEST: Final = (
    f"SELECT {FORMER_STATE} FROM former_states WHERE root = %s"  # noqa: S608 - our columns
    " ORDER BY ended_ms, path, modified_ms, version LIMIT %s"
)
_LARGEST: Final = (
    "SELECT root, sum(size_bytes) FROM former_states GROUP BY root"
    " ORDER BY sum(size_bytes) DESC, root LIMIT 2"
)
_AFTER_ALL: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Retention:
    """How long former states are kept, in milliseconds; 0 for not at all."""

    deleted_ms: int
    versions_ms: int

    @property
    def deleted_days(self) -> int:
        return self.deleted_ms // DAY_MS

    @property
    def versions_days(self) -> int:
        return self.versions_ms // DAY_MS

    def limited(self, choice: Choice) -> Retention:
        """The same, but no longer than the owner of a pod has chosen."""
        return Retention(
            _at_most(self.deleted_ms, choice.deleted_days),
            _at_most(self.versions_ms, choice.versions_days),
        )

    def joined(self, other: Retention) -> Retention:
        """As long as either says."""
        return Retention(
            max(self.deleted_ms, other.deleted_ms), max(self.versions_ms, other.versions_ms)
        )

    def is_kept(self, state: FormerState, now_ms: int) -> bool:
        """Whether a state is young enough."""
        if state.kind == storage_records.ResourceKind.ACL.value:
            limit_ms = max(self.deleted_ms, self.versions_ms)
        else:
            limit_ms = self.deleted_ms if state.deleted else self.versions_ms
        return state.ended_ms > now_ms - limit_ms


def _at_most(limit_ms: int, days: int | None) -> int:
    return limit_ms if days is None else min(limit_ms, days * DAY_MS)


class Choice(msgspec.Struct, frozen=True):
    """For how many days the owner of a pod keeps what was deleted, and versions; ``None`` for as
    long as the operator says. The root of the pod is the key, and the owner."""

    deleted_days: int | None
    versions_days: int | None


CHOICES: Final = RecordKind("history-choice", Choice)


class Retentions:
    """How long each storage keeps former states: as its owner has chosen, and not longer than the
    operator says. All choices are in memory, so that writes need not read them."""

    def __init__(self, records: RecordStore, longest: Retention) -> None:
        self._records = records
        self.longest = longest
        self._chosen: dict[ResourcePath, Retention] = {}
        self._mark: int | None = None

    def of(self, root: ResourcePath | None) -> Retention:
        """That of the storage with a root."""
        return self._chosen.get(root, self.longest) if root is not None else self.longest

    async def choose(self, root: ResourcePath, choice: Choice) -> None:
        """Store what the owner of a pod has chosen. Raises StorageError, Overloaded."""
        await self._records.commit([CHOICES.put(root, choice, owner=root)])
        self._chosen[root] = self.longest.limited(choice)

    async def look(self) -> None:
        """Learn what owners have chosen, if anything was stored since. Raises StorageError."""
        mark = self._records.store.data_version()
        if mark is not None and mark == self._mark:
            return
        self._chosen = {
            ResourcePath(each.key): self.longest.limited(each.value)
            async for each in self._records.each(CHOICES)
        }
        self._mark = mark


class KnownCreation(msgspec.Struct, frozen=True, array_like=True):
    """Who has created a resource, through which application, and the version that it got."""

    path: ResourcePath
    agent: str | None
    client: str | None
    version: storage_records.Version
    at_ms: int


class Creations(msgspec.Struct, frozen=True):
    """Some of the creations in a pod. The key is the root of the pod, the time when they were
    stored, and something random; the root is the owner."""

    creations: tuple[KnownCreation, ...]


CREATIONS: Final = RecordKind("history-created", Creations)


class CreationLog:
    """Records who creates resources (:class:`WriteObserver`), as long as they would stay in the
    trash: in memory at first, then in batches. So writes need not wait for it; what is created in
    the minute before a kill cannot be undone."""

    def __init__(self, records: RecordStore, retentions: Retentions) -> None:
        self._records = records
        self._retentions = retentions
        self._waiting: dict[ResourcePath, list[KnownCreation]] = {}

    def committed(self, agent: Identity | None, write: storage_records.Write) -> None:
        """As :class:`WriteObserver` says."""
        if write.deletes:  # what is moved is not created
            return
        for put in write.puts:
            root = storage_root(put.path) if put.creates else None
            if root is not None and len(self._waiting.setdefault(root, [])) < MAX_CREATIONS:
                iri = None if agent is None else agent.iri
                client = None if agent is None else agent.client_id
                creation = KnownCreation(put.path, iri, client, write.version, write.at_ms)
                self._waiting[root].append(creation)

    async def store(self) -> None:
        """Store what waits. Raises ServerTrouble; it is then stored later."""
        for root in list(self._waiting):
            while waiting := self._waiting.pop(root, None):
                batch = waiting[:CREATIONS_OF_BATCH]
                if rest := waiting[CREATIONS_OF_BATCH:]:
                    self._waiting[root] = rest
                try:
                    await self._store(root, batch)
                except BaseException:
                    self._waiting.setdefault(root, [])[:0] = batch
                    raise

    async def _store(self, root: ResourcePath, batch: Sequence[KnownCreation]) -> None:
        kept_ms = self._retentions.of(root).deleted_ms
        if kept_ms:
            now_ms = self._records.now_ms()
            key = f"{root}{now_ms:015d}-{self._records.randomness.token_hex(4)}"
            value, expires_ms = Creations(tuple(batch)), now_ms + kept_ms
            put = CREATIONS.put(key, value, owner=root, expires_ms=expires_ms)
            await self._records.commit([put])

    async def of(
        self, root: ResourcePath, since_ms: int = 0
    ) -> Mapping[ResourcePath, KnownCreation]:
        """The last creation of each resource of a pod since a time, as far as it is known. Raises
        ServerTrouble."""
        await self.store()
        found: dict[ResourcePath, KnownCreation] = {}
        after, records = f"{root}{since_ms:015d}", self._records
        while page := await CREATIONS.page(
            records.store, after=after, now_ms=records.now_ms(), limit=PAGE_OF_BATCHES
        ):
            for each in page:
                if not each.key.startswith(root):
                    return found
                for creation in each.value.creations:  # stored after it was made
                    last = found.get(creation.path)
                    if last is None or last.at_ms <= creation.at_ms:
                        found[creation.path] = creation
            after = page[-1].key
            await asyncio.sleep(0)
        return found


class RetentionFilter:
    """Says of the states of a storage, in descending order, which are not kept any longer."""

    def __init__(self, retention: Retention, now_ms: int) -> None:
        self._retention = retention
        self._now_ms = now_ms
        self._begin("")

    def _begin(self, path: str) -> None:
        self._path = path
        self._days = self._runs = self._within_runs = 0
        self._day: int | None = None
        self._newer: FormerState | None = None
        self._gone: set[int] = set()

    def drops(self, state: FormerState, older: FormerState | None) -> bool:
        """Whether the next state is to be removed, before which there is an ``older`` one."""
        if state.path != self._path:
            self._begin(state.path)
        is_kept = self._retention.is_kept(state, self._now_ms)
        if state.kind == storage_records.ResourceKind.ACL.value:
            return not is_kept
        if state.deleted:
            # With what was deleted, its versions leave the trash: those with its time of creation.
            if not is_kept:
                self._gone.add(state.created_ms)
            return not is_kept
        if not is_kept or state.created_ms in self._gone:
            return True
        if self._is_of_last_day(state):
            return self._drops_of_last_day(state, older)
        day = state.ended_ms // DAY_MS
        if day == self._day:
            return True
        self._day = day
        self._days += 1
        return self._days > MAX_VERSIONS

    def _is_of_last_day(self, state: FormerState) -> bool:
        return state.ended_ms > self._now_ms - DAY_MS

    def _drops_of_last_day(self, state: FormerState, older: FormerState | None) -> bool:
        # An application that writes again and again must not make people lose what was there
        # before it, so that is the last to go.
        if self._newer is None or not _is_same_run(state, self._newer):
            self._runs += 1
        self._newer = state
        if self._runs > MAX_VERSIONS:
            return True
        if older is None or not self._is_of_last_day(older) or not _is_same_run(older, state):
            return False
        self._within_runs += 1
        return self._within_runs > MAX_VERSIONS


def _is_same_run(older: FormerState, newer: FormerState) -> bool:
    """Whether the same agent has ended both states of a document, through one application."""
    return (older.path, older.deleted, older.agent, older.client) == (
        newer.path,
        newer.deleted,
        newer.agent,
        newer.client,
    )


def charge(state: FormerState) -> int:
    """What a former state takes up."""
    return state.size_bytes + fixed_charge(state.path)


class Keeper:
    """Lets writes keep former states, and removes those that are not kept any longer."""

    def __init__(self, records: RecordStore, quotas: PodQuotas, longest: Retention) -> None:
        """Nothing is kept for longer than ``longest``."""
        self._records = records
        self._store = records.store
        self._quotas = quotas
        self.retentions = Retentions(records, longest)
        self.creations = CreationLog(records, self.retentions)
        self._written: Counter[ResourcePath] = Counter()
        self._looking: dict[ResourcePath, asyncio.Task[None]] = {}
        self._looks = 0
        self._following = Background(
            self._look_and_store,
            logger,
            "Who creates resources could not be stored",
            every_s=LOOK_S,
            again_s=LOOK_S,
            at_end=self.creations.store,
        )

    async def extended(
        self, agent: Identity | None, write: storage_records.Write
    ) -> storage_records.Write:
        """Add to a write what it keeps (:class:`WriteExtension`)."""
        puts = write.puts
        if len(puts) == 1 and not write.deletes:  # most writes
            if puts[0].creates:
                return write
            paths = [puts[0].path]
            root = storage_root(paths[0])
            retention = self.retentions.of(root)
        else:
            paths = [put.path for put in puts if not put.creates]
            paths += write.deletes
            if not paths:
                return write
            root = storage_root(paths[0])
            retention = self.retentions.of(root)
            # Of what is moved between storages, one may keep what the other does not: what is kept
            # for too long cannot be read, and the next sweep removes it.
            for other in {storage_root(each) for each in paths} - {root}:
                retention = retention.joined(self.retentions.of(other))
        if not (retention.deleted_ms or retention.versions_ms):
            return write
        replaced = retention.versions_ms > 0
        if root is not None:
            written = self._written[root]
            for put in puts:
                written += put.body.size_bytes
            self._written[root] = written + 1024 * len(paths)
            if written > LOOK_AFTER_BYTES:
                replaced = replaced and root not in self._looking
                self.tidy_soon(root)
        keeps = storage_records.KeepFormerStates(
            replaced,
            retention.deleted_ms > 0,
            None if agent is None else agent.iri,
            None if agent is None else agent.client_id,
            _rules_of(paths, write),
        )
        return replace(write, keeps=keeps)

    def tidy_soon(self, root: ResourcePath) -> None:
        """Remove in the background what is not kept any longer in a storage."""
        if root not in self._looking:
            task = asyncio.create_task(self._tidy_alone(root), name="podstead-history")
            self._looking[root] = task

    async def _tidy_alone(self, root: ResourcePath) -> None:
        try:
            await self.tidy(root)
        except Exception:
            logger.exception("Former states could not be removed; the next sweep will do it")
        finally:
            del self._written[root]
            del self._looking[root]

    async def start(self) -> None:
        """Begin to look for what owners choose, and to store who creates resources. Raises
        StorageError."""
        await self.retentions.look()
        self._following.start(at_once=False)

    async def _look_and_store(self) -> None:
        await self.retentions.look()
        self._looks += 1
        if self._looks % LOOKS_PER_STORING == 0:
            await self.creations.store()

    async def stop(self) -> None:
        """End what runs in the background."""
        await cancel_and_wait(self._looking.values())
        await self._following.stop()

    async def sweep(self) -> None:
        """Remove what is not kept any longer. Raises StorageError, Overloaded."""
        self._written.clear()
        await self.retentions.look()
        root = ""
        while found := await self._store.fetch(_ROOTS, root):
            root = found[0][0]
            await self.tidy(ResourcePath(root))

    async def tidy(self, root: ResourcePath) -> None:
        """The same in one storage. Raises StorageError, Overloaded."""
        thinning = RetentionFilter(self.retentions.of(root), self._records.now_ms())
        kept_bytes = 0
        async for page in self._backwards(root):
            surplus = []
            for state, older in page:
                if thinning.drops(state, older):
                    surplus.append(state)
                else:
                    kept_bytes += charge(state)
            await self.drop(surplus)
        await self._make_room(root, kept_bytes)

    async def drop(self, states: Sequence[FormerState]) -> None:
        """Remove states, in their order. Raises StorageError, Overloaded."""
        await drop_all(self._records, states)
        if any(each.blob is not None for each in states):
            await self._store.remove_garbage(now_ms=self._records.now_ms())

    async def _make_room(self, root: ResourcePath, kept_bytes: int) -> None:
        quota_bytes = await self._quotas.of(root)
        if not quota_bytes:
            return
        used_bytes = await self._store.used_bytes(root.strip("/"))
        surplus_bytes = used_bytes + kept_bytes - quota_bytes
        while surplus_bytes > 0:
            oldest = await self._oldest(root)
            gone = []
            for state in oldest:
                if surplus_bytes > 0:
                    gone.append(state)
                    surplus_bytes -= charge(state)
            await self.drop(gone)
            if len(oldest) < BATCH:
                return

    async def make_disk_room(self) -> AsyncIterator[int]:
        """Remove the oldest states, each time in the storage that has most of them, so that nobody
        pays for others, and give the bytes of each step. Raises StorageError, Overloaded."""
        for _ in range(MAX_DISK_STEPS):
            if not await self._store.remove_garbage(now_ms=self._records.now_ms()):
                return
            largest = await self._store.fetch(_LARGEST)
            if not largest:
                return
            root, size_bytes = largest[0]
            next_bytes = largest[1][1] if len(largest) > 1 else 0
            while size_bytes >= next_bytes and (oldest := await self._oldest(root)):
                await self.drop(oldest)
                removed_bytes = sum(map(charge, oldest))
                size_bytes -= sum(each.size_bytes for each in oldest)
                yield removed_bytes

    async def _oldest(self, root: ResourcePath) -> list[FormerState]:
        return [former_state_of(row) for row in await self._store.fetch(_OLDEST, root, BATCH)]

    async def _backwards(
        self, root: ResourcePath
    ) -> AsyncIterator[Sequence[tuple[FormerState, FormerState | None]]]:
        """The states of a storage in descending order, each with the one that follows."""
        key: tuple[str, int, str] = (_AFTER_ALL, 0, "")
        while rows := await self._store.fetch(_BACKWARDS, root, *key, PAGE + 1):
            states = [former_state_of(row) for row in rows]
            page = states[:PAGE]
            yield list(zip_longest(page, states[1:]))
            last = page[-1]
            key = last.path, last.modified_ms, last.version
            await asyncio.sleep(0)


async def drop_all(records: RecordStore, states: Sequence[FormerState]) -> None:
    """Remove states, in their order, some at a time. Raises StorageError, Overloaded."""
    for start in range(0, len(states), BATCH):
        await records.commit([each.drop for each in states[start : start + BATCH]])


def _rules_of(
    paths: Sequence[ResourcePath], write: storage_records.Write
) -> tuple[tuple[ResourcePath, storage_records.AtVersion], ...]:
    """The ACL that governs each path before the write.

    The decision about the write depends on it, and is among its preconditions.
    """
    acls = {}
    for each in write.preconditions:
        if type(each) is storage_records.AtVersion and each.path.endswith(ACL_SUFFIX):
            acls[each.path] = each
    found = []
    for path in paths:
        place = modes.governed(path)
        if not place.is_acl:
            for acl in effective.acl_paths(place.subject):
                if acl in acls:
                    found.append((path, acls[acl]))
                    break
    return tuple(found)
