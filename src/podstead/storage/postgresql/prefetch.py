"""Reading in one round trip what the decision about a request needs.

Before a request is authenticated, one statement reads the metadata around its target, what its
storage uses, and a number that changes whenever a pod or token does on any node. The next reads of
the request are answered from that, and from the pods and tokens that were read under the same
number before. So the request sees everything that was committed before it arrived.

What was read ahead is used for a second at most, and neither after a commit nor after the response:
a request that waits, for its body or as an event stream, asks the database again.

All that a request reads is noted, so that its response can be used again while it would read the
same. Whatever the same statement could not read again makes that impossible.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar, Token
from time import monotonic
from typing import Final, Generic, Self, TypeVar

from podstead.core.caches import BoundedCache
from podstead.core.errors import Overloaded, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.dependencies import Dependencies
from podstead.storage.postgresql.expectations import SeenRows
from podstead.storage.postgresql.reads import PrefetchedState, Reader
from podstead.storage.protocol import Snapshot
from podstead.storage.records import Metadata, PodRecord, TokenRecord

VALID_S: Final = 1.0
"""A request could have arrived this much earlier anyway; credentials are checked again after the
same time."""

_MAX_RECORDS: Final = 16_384
"""How many pods a worker keeps, and how many tokens."""

MAX_DEPENDENCIES: Final = 512
"""How many paths a response may depend on to be used again."""

MAX_LEARNED: Final = 100
"""How many rows of one result are noted for a write that follows."""

Record = TypeVar("Record")


class RequestPrefetch:
    """Implements Ahead."""

    __slots__ = (
        "_asked_s",
        "_error",
        "_learned",
        "_paths",
        "_previous",
        "_reader",
        "_relied_on",
        "_snapshot",
        "_state",
        "_until_s",
        "_uses_registries",
    )

    def __init__(self, reader: Reader, paths: Iterable[ResourcePath]) -> None:
        """The first of the paths is the target."""
        self._reader = reader
        self._paths = tuple(paths)
        self._state: PrefetchedState | None = None
        self._snapshot: Snapshot | None = None
        self._learned: dict[ResourcePath, Metadata | None] = {}
        self._asked_s = 0.0
        self._until_s = 0.0
        self._error: StorageError | Overloaded | None = None
        self._relied_on: dict[ResourcePath, Metadata | None] | None = {}
        self._uses_registries = False
        self._previous: Token[RequestPrefetch | None] | None = None

    async def __aenter__(self) -> Self:
        if self._error is not None:
            raise self._error
        if self._state is None:
            await self._read()
        self._previous = _current.set(self)
        return self

    async def confirms(self, dependencies: Dependencies) -> bool:
        try:
            state = await self._read()
        except (StorageError, Overloaded) as error:
            self._error = error
            return False
        if dependencies.registries not in (None, state.registries):
            return False
        return state.snapshot == dependencies.metadata

    async def _read(self) -> PrefetchedState:
        self._asked_s = monotonic()
        self._state = state = await self._reader.prefetch(self._paths)
        self._until_s = monotonic() + VALID_S
        self._snapshot = state.snapshot
        return state

    async def __aexit__(self, *_: object) -> None:
        self.end()
        if self._previous is not None:
            _current.reset(self._previous)

    def end(self) -> None:
        """Use nothing of it any more, also not in tasks that the request has started."""
        self._state = None

    def state(self, reader: Reader) -> PrefetchedState | None:
        """What was read, while it may be used by those who would ask this reader."""
        if reader is not self._reader or monotonic() >= self._until_s:
            return None
        return self._state

    def take_snapshot(self, paths: Iterable[ResourcePath]) -> Snapshot | None:
        """The metadata of these paths, once: whoever reads again wants to know what has changed."""
        snapshot, wanted = self._snapshot, tuple(paths)
        if snapshot is None or not all(path in snapshot for path in wanted):
            return None
        self._snapshot = None
        taken = {path: snapshot[path] for path in wanted}
        self.note(taken)
        return taken

    def note(self, read: Snapshot) -> None:
        """Note what the request has read."""
        relied_on = self._relied_on
        if relied_on is None:
            return
        for path, metadata in read.items():
            # What has changed since it was read first was perhaps used before.
            if relied_on.setdefault(path, metadata) != metadata:
                self.note_unconfirmable()
                return
        if len(relied_on) > MAX_DEPENDENCIES:
            self.note_unconfirmable()

    def note_registries(self) -> None:
        """Note that the request has asked for a pod or token, or whether any has changed."""
        self._uses_registries = True

    def note_unconfirmable(self) -> None:
        """Note that the request has used the store in another way."""
        self._relied_on = None

    def dependencies(self) -> Dependencies | None:
        state, relied_on, target = self.state(self._reader), self._relied_on, self._paths[0]
        if state is None or relied_on is None or target not in relied_on:
            return None
        registries = state.registries if self._uses_registries else None
        return Dependencies(registries, {target: relied_on[target], **relied_on})

    def learn(self, found: Snapshot) -> None:
        """Note what the request has read later, as part of what its write is decided on."""
        if len(found) > MAX_LEARNED:
            return
        for path, metadata in found.items():
            # The members of a container were not counted this time.
            if metadata is None or not metadata.kind.is_container:
                self._learned[path] = metadata

    def seen(self, reader: Reader, quota_of: "QuotaOf") -> SeenRows | None:
        """What the request has seen of the rows that its write is decided on, while it may be
        used."""
        state = self.state(reader)
        if state is None or state.used_bytes is None:
            return None
        quota = quota_of(state)
        if quota is None:
            return None
        return SeenRows(
            self._asked_s,
            {**state.snapshot, **self._learned},
            state.member_counts,
            ResourcePath(state.storage),
            state.used_bytes,
            quota[0],
        )


QuotaOf = Callable[[PrefetchedState], tuple[int | None] | None]
"""The quota of its own that the storage has, if that is known without asking."""

_current: ContextVar[RequestPrefetch | None] = ContextVar("podstead_request_ahead", default=None)


def current_prefetch() -> RequestPrefetch | None:
    """What was read ahead for the request that this task handles."""
    return _current.get()


class CachedRegistries:
    """The pods and tokens that a worker has read, each with the number under which it was read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._pods: _VersionedRecords[PodRecord] = _VersionedRecords(reader.read_pod)
        self._tokens: _VersionedRecords[TokenRecord] = _VersionedRecords(reader.read_token)
        self._unknown = 0

    def version(self) -> int:
        """The number that was read ahead for this request, else one that was never used before."""
        state = self.state()
        if state is not None:
            return state.registries
        self._unknown -= 1
        return self._unknown

    async def read_pod(self, name: str) -> PodRecord | None:
        """The pod of that name. Raises StorageError, Overloaded."""
        return await self._pods.read(name, self.state())

    async def read_token(self, token_id: str) -> TokenRecord | None:
        """The token with that ID. Raises StorageError, Overloaded."""
        return await self._tokens.read(token_id, self.state())

    def state(self) -> PrefetchedState | None:
        """What was read ahead for this request and may still be used."""
        ahead = _current.get()
        if ahead is None:
            return None
        ahead.note_registries()
        return ahead.state(self._reader)

    def quota_of(self, state: PrefetchedState) -> tuple[int | None] | None:
        """The quota of its own that the storage has, if its pod is kept under the same number."""
        stored = self._pods.recall(state.storage.strip("/"), state)
        if stored is None:
            return None
        _, pod = stored
        return (None if pod is None else pod.quota_bytes,)


class _VersionedRecords(Generic[Record]):
    """Records by name, ``None`` for those that do not exist."""

    def __init__(self, read: Callable[[str], Awaitable[Record | None]]) -> None:
        self._read = read
        self._records: BoundedCache[str, tuple[int, Record | None]] = BoundedCache(_MAX_RECORDS)

    async def read(self, name: str, state: PrefetchedState | None) -> Record | None:
        if state is None:
            return await self._read(name)
        stored = self.recall(name, state)
        if stored is None:
            # The number was read before the record, which can only be newer.
            stored = (state.registries, await self._read(name))
            self._records.put(name, stored)
        return stored[1]

    def recall(self, name: str, state: PrefetchedState) -> tuple[int, Record | None] | None:
        """What is kept under the number that was read ahead."""
        stored = self._records.get(name)
        return None if stored is None or stored[0] != state.registries else stored
