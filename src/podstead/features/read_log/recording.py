"""Records who reads what in the folders with a read log.

Each worker knows the folders, adds reads up in memory, and stores them every half minute, so a kill
loses those of that time. Reads of one reader of one resource on one day are one row with a number.
Logs are limited in rows and in time, and one reader fills a part of a batch at most: what exceeds
it is added up without the names of resources.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

import msgspec

from podstead.core.codes import ErrorCode
from podstead.core.errors import Conflict, ServerTrouble
from podstead.core.identifiers import ResourcePath, ancestors, moved_path, storage_root
from podstead.core.identity import Identity
from podstead.resources.planning import ContainerHook
from podstead.storage.record_store import Changes, RecordKind, RecordStore, Versioned
from podstead.storage.records import PodRecord, Precondition, Record


class ReadLogCodes(ErrorCode):
    """The errors of this feature."""

    NO_FOLDER = "There is no folder here"
    TOO_MANY = "A pod can have at most {number} read logs; switch others off first"


MAX_LOGS_OF_POD: Final = 20
MAX_ROWS: Final = 10_000
"""How many rows a log has; the sweep removes the oldest beyond that."""
ROWS_OF_BATCH: Final = 500
ROWS_OF_READER: Final = 100
"""How many resources of one reader a batch names."""
MAX_WAITING: Final = 100
"""How many full batches wait to be stored; the oldest are dropped beyond that."""
_DAY_S: Final = 86_400
_PAGE: Final = 50


class ReadLog(msgspec.Struct, frozen=True):
    """The log of a folder, whose path is the key; the root of the pod is the owner."""

    log_id: str
    since_s: int


class Reads(msgspec.Struct, frozen=True, array_like=True):
    """How often an agent has read a resource, first and last; without an ``agent`` the public. The
    ``path`` is empty for resources that are not named any more."""

    agent: str
    client: str
    path: str
    count: int
    first_s: int
    last_s: int


class Batch(msgspec.Struct, frozen=True):
    """Some of the reads of one log. The key is the ID of the log, when the batch began, and
    something random."""

    reads: tuple[Reads, ...]


LOGS: Final = RecordKind("read-log", ReadLog)
BATCHES: Final = RecordKind("read-log-batch", Batch)
SEEN: Final = RecordKind("read-log-seen", Batch)
"""Written when a worker begins to record in a folder: every write ends what the caches of this
machine hold."""


class _OpenBatch:
    """The reads of one log on one day that one worker has added up."""

    def __init__(self, key: str, day: int) -> None:
        self.key = key
        self.day = day
        self.is_stored = True
        self._rows: dict[tuple[str, str, str], tuple[int, int, int]] = {}
        self._named: Counter[tuple[str, str]] = Counter()

    @property
    def is_full(self) -> bool:
        return len(self._rows) >= ROWS_OF_BATCH

    def add(self, agent: str, client: str, path: str, now_s: int) -> None:
        reader, row = (agent, client), (agent, client, path)
        if row not in self._rows:
            if self._named[reader] >= ROWS_OF_READER:
                row = (agent, client, "")
            self._named[reader] += row not in self._rows
        count, first_s, _ = self._rows.get(row, (0, now_s, now_s))
        self._rows[row] = (count + 1, first_s, now_s)
        self.is_stored = False

    def value(self) -> Batch:
        return Batch(tuple(Reads(*row, *numbers) for row, numbers in self._rows.items()))


class ReadRecorder:
    """The read logs as one worker sees them (:class:`ReadObserver`)."""

    def __init__(
        self, records: RecordStore, *, days: int, forget_responses: Callable[[], None]
    ) -> None:
        """``days`` is how long reads are kept. Responses that are cached would hide reads."""
        self.records = records
        self.watched: dict[ResourcePath, str] = {}
        self._forget_responses = forget_responses
        self._forgets_again = False
        self._kept_ms = days * _DAY_S * 1000
        self._open: dict[str, _OpenBatch] = {}
        self._full: list[_OpenBatch] = []
        self._mark: int | None = None

    def note_read(self, agent: Identity | None, path: ResourcePath) -> bool:
        """As :class:`podstead.resources.context.ReadObserver` says."""
        found = False
        for folder in (path, *ancestors(path)):
            log_id = self.watched.get(folder)
            if log_id is not None:
                self._add(log_id, agent, path)
                found = True
        return found

    def _add(self, log_id: str, agent: Identity | None, path: ResourcePath) -> None:
        now_s = self.records.now_s()
        batch = self._open.get(log_id)
        if batch is None or batch.day != now_s // _DAY_S or batch.is_full:
            if batch is not None:
                self._full.append(batch)
                del self._full[:-MAX_WAITING]
            key = f"{log_id}/{now_s:012d}-{self.records.randomness.token_hex(4)}"
            batch = self._open[log_id] = _OpenBatch(key, now_s // _DAY_S)
        if agent is None:
            batch.add("", "", path, now_s)
        else:
            batch.add(agent.iri, agent.client_id or "", path, now_s)

    # In the background

    async def look(self) -> None:
        """Learn which folders have logs, if anything was stored since. Raises StorageError,
        Overloaded."""
        if self._forgets_again:  # also what was under way the last time
            self._forget_responses()
            self._forgets_again = False
        mark = self.records.store.data_version()
        if mark is not None and mark == self._mark:
            return
        watched = {
            ResourcePath(each.key): each.value.log_id async for each in self.records.each(LOGS)
        }
        self._mark = mark
        before, self.watched = set(self.watched.values()), watched
        for log_id in before - set(watched.values()):
            self._open.pop(log_id, None)
        if before.issuperset(watched.values()):
            return
        self._forget_responses()
        self._forgets_again = True
        if mark is not None:  # for the pages of folders
            key = self.records.randomness.token_hex(8)
            expires_ms = self.records.now_ms() + 60_000
            await self.records.commit([SEEN.put(key, Batch(()), expires_ms=expires_ms)])

    async def store(self) -> None:
        """Store what was added up. Raises ServerTrouble; it is then stored later."""
        waiting = [*self._full, *self._open.values()]
        for batch in [each for each in waiting if not each.is_stored]:
            expires_ms = self.records.now_ms() + self._kept_ms
            value, batch.is_stored = batch.value(), True
            try:
                await self.records.commit([BATCHES.put(batch.key, value, expires_ms=expires_ms)])
            except ServerTrouble:
                batch.is_stored = False
                raise
        self._full = [each for each in self._full if not each.is_stored]

    async def sweep(self) -> None:
        """Remove the oldest rows of long logs, and those of logs that are no more. Raises
        ServerTrouble."""
        await self.look()
        known, after = set(self.watched.values()), ""
        while first := await self._page(after, limit=1):
            log_id = first[0].key.partition("/")[0]
            keys = [(each.key, len(each.value.reads)) async for each in self.batches(log_id)]
            rows, surplus = 0, list[str]()
            for key, number in reversed(keys):
                rows += number
                if log_id not in known or rows > MAX_ROWS:
                    surplus.append(key)
            await self.records.commit([BATCHES.drop(key) for key in surplus])
            after = f"{log_id}0"  # the character after the slash

    # What pages use

    async def batches(self, log_id: str) -> AsyncIterator[Versioned[Batch]]:
        """The batches of a log, the oldest first. Raises StorageError."""
        after, prefix = f"{log_id}/", f"{log_id}/"
        while page := await self._page(after, limit=_PAGE):
            for each in page:
                if not each.key.startswith(prefix):
                    return
                yield each
            after = page[-1].key

    async def _page(self, after: str, *, limit: int) -> Sequence[Versioned[Batch]]:
        store, now_ms = self.records.store, self.records.now_ms()
        return await BATCHES.page(store, after=after, now_ms=now_ms, limit=limit)

    async def switch_on(self, folder: ResourcePath) -> None:
        """Begin a log, unless there is one. Raises Conflict for too many, ServerTrouble."""
        pod = storage_root(folder)
        others = await self.records.of_owner(LOGS, pod or "", limit=MAX_LOGS_OF_POD)
        if any(each.key == folder for each in others):
            return
        if pod is None or len(others) >= MAX_LOGS_OF_POD:
            raise Conflict(ReadLogCodes.TOO_MANY, number=MAX_LOGS_OF_POD)
        log = ReadLog(self.records.randomness.token_hex(8), self.records.now_s())
        await self.records.try_commit([LOGS.put(folder, log, owner=pod)], [LOGS.absent(folder)])

    async def switch_off(self, folder: ResourcePath) -> None:
        """End a log, and remove what it contains. Raises ServerTrouble."""
        stored = await self.records.read(LOGS, folder)
        if stored is None:
            return
        await self.records.commit([LOGS.drop(folder)])
        keys = [each.key async for each in self.batches(stored.value.log_id)]
        await self.records.commit([BATCHES.drop(key) for key in keys])


class ReadLogHook(ContainerHook):
    """Lets logs follow what is moved, and a pod that is renamed, and end with their folders."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    def of_deletion(self, container: ResourcePath) -> Sequence[Record]:
        return (LOGS.drop(container),)

    async def of_move(
        self,
        source: ResourcePath,
        destination: ResourcePath,
        containers: Sequence[ResourcePath],
    ) -> Changes[None]:
        del containers
        pod, to = storage_root(source), storage_root(destination)
        if pod is None:
            return Changes(None)
        moved = {
            each: moved_path(each.key, source, destination) if to == pod else None
            for each in await self._records.of_owner(LOGS, pod)
            if source.endswith("/") and each.key.startswith(source)
        }
        return _rekeyed(moved, pod)

    async def of_renaming(
        self,
        pod: PodRecord,
        after: PodRecord,
        renamed: Callable[[ResourcePath], ResourcePath],
    ) -> Changes[None]:
        logs = await self._records.of_owner(LOGS, pod.root)
        return _rekeyed({each: renamed(ResourcePath(each.key)) for each in logs}, after.root)


def _rekeyed(moved: Mapping[Versioned[ReadLog], str | None], owner: str) -> Changes[None]:
    """What moves logs to the folders that they have now."""
    records: list[Record] = []
    preconditions: list[Precondition] = []
    for stored, folder in moved.items():
        records.append(LOGS.drop(stored.key))
        preconditions.append(stored.unchanged)
        if folder is not None:
            records.append(LOGS.put(folder, stored.value, owner=owner))
    return Changes(None, records, preconditions)
