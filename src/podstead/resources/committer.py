"""Commits planned writes while other writers are active.

A plan is made on one state of the target and committed with its preconditions. If one of them no
longer holds at the commit, the state is read and the write planned again; nothing of the old plan
is reused.

Locks keep the writers of one resource from planning repeatedly on states that have changed since;
correctness does not depend on them. A writer does not hold its lock while the disk is busy. It
releases the lock early, together with the state that its write will produce, and the next writer
plans on that state. Many writes, each of which has the one before it as a precondition, therefore
share one commit, and a plan fails if a write that it builds on fails. A refusal has no
preconditions, so it must not be based on a state that may never exist: the writer waits for the
pending writes and decides again.

Locks of a process cost next to nothing, and suffice while writers of a resource rarely meet. Where
they do, those of other processes are likely to be there, too, and every plan that one process makes
while another writes is in vain. Therefore processes lock such a resource against each other: the
second writer there acquires the lock of its process, and those that follow within
:data:`MAX_PROCESS_LOCK_S` go on from its result. So does the first, where a write has just failed
because another process was faster, or where another process has the lock: one write in between
would be enough for all that were planned there to fail.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol, Self

import msgspec
from msgspec.structs import replace

from podstead.core.clock import Clock
from podstead.core.errors import Conflict, Overloaded, QuotaExceeded, RequestRefused
from podstead.core.identifiers import ACL_SUFFIX, ResourcePath
from podstead.core.identity import Identity
from podstead.resources.codes import ResourceCodes
from podstead.resources.outcome import Outcome, ResourceRequest
from podstead.resources.planning import Plan
from podstead.resources.target_state import TargetState
from podstead.storage.document_reader import Superseded
from podstead.storage.protocol import InterprocessLock, ResourceStore
from podstead.storage.records import Committed, Metadata, NoMembers, OverQuota, ResourceKind, Write

MAX_PROCESS_LOCK_S: Final = 0.05
"""How long writers of this process use one lock of a resource that other processes write to."""

CONTENDED_S: Final = 1.0
"""How long a resource is locked among processes after they last met there."""

MAX_CONTENDED: Final = 1024
"""The number of resources remembered as written by other processes, too."""


class _Chain(msgspec.Struct, eq=False):
    """Pending writes, each of which depends on the one before it.

    ``expected`` is the state that the last of them will produce. Chains are compared by identity: a
    write that fails late must not end a chain that began after its own.
    """

    expected: Metadata | None = None


class _Queue(msgspec.Struct):
    """The writers of one resource: waiting for the lock, planning, or with a pending write.

    The holder of ``lock`` plans. ``writers`` counts writers in all three states, ``pending`` those
    in the last.
    """

    # asyncio.Lock is fair: writers get it in the order in which they asked.
    lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    writers: int = 0
    pending: int = 0
    chain: _Chain = msgspec.field(default_factory=_Chain)
    none_pending: asyncio.Event | None = None
    process_lock: InterprocessLock | None = None
    process_lock_until_s: float = 0.0

    def release_interprocess(self) -> None:
        """Let the writers of other processes go on."""
        if self.process_lock is not None:
            self.process_lock.end()
            self.process_lock = None


class WriteLock:
    """The lock of one writer on a resource, as a context manager that spans the whole write.

    A class, because a generator-based context manager would take three times as long.
    """

    __slots__ = ("_chain", "_committed", "_locks", "_path", "_queue", "was_contended")

    def __init__(self, locks: "WriteLocks", path: ResourcePath) -> None:
        self._locks = locks
        self._path = path
        self._chain: _Chain | None = None
        self._committed = False

    async def __aenter__(self) -> Self:
        """Wait for the lock."""
        locks = self._locks
        queue = locks.queues.get(self._path)
        if queue is None:
            queue = locks.queues[self._path] = _Queue()
        self._queue = queue
        self.was_contended = queue.writers > 0
        """Whether the state that was read before the lock was acquired may be out of date."""
        # Counted before the wait, so that the queue is not removed while a writer waits in it.
        queue.writers += 1
        try:
            await queue.lock.acquire()
        except BaseException:  # cancelled while waiting: __aexit__ will not be called
            self._leave()
            raise
        if not self.was_contended and locks.is_taken(self._path):
            locks.note_contention(self._path)
        if self.was_contended or self._path in locks.contended:
            try:
                await self._acquire_process_lock()
            except BaseException:
                queue.lock.release()
                self._leave()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._end()
        self._leave()

    @property
    def expected(self) -> Metadata | None:
        """The state that the pending writes will produce.

        ``None`` if there are none, or if one of them failed: then the store must be read.
        """
        return self._queue.chain.expected

    async def wait_for_pending(self) -> None:
        """Wait until no write is pending, so that the store holds the current state."""
        if self._queue.pending:
            # One event is enough and cannot be missed: this writer holds the lock, so no other
            # writer can wait here, and no further write can become pending.
            self._queue.none_pending = asyncio.Event()
            await self._queue.none_pending.wait()

    def release_early(self, expected: Metadata) -> None:
        """Release the lock; the next writer plans on ``expected``, which this write will produce.

        The caller must pass the write to the store before it awaits anything else, so that the
        store receives it before the writes that depend on it.
        """
        queue = self._queue
        queue.chain.expected = expected
        queue.pending += 1
        if queue.process_lock is not None:
            queue.process_lock.expect(queue.writers - queue.pending)
        self._chain = queue.chain
        queue.lock.release()

    def keep(self) -> None:
        """Keep the lock until the write is stored, so that no other can share its commit."""
        if self._queue.process_lock is not None:
            self._queue.process_lock.expect(0)

    def mark_committed(self) -> None:
        """Record that the write was committed.

        Without this call the write is treated as failed, and later writers read the store instead
        of building on it. That is always safe and costs one read.
        """
        self._committed = True

    def mark_overtaken(self) -> None:
        """Record that the write failed because something else has been written before."""
        self._locks.note_contention(self._path)

    async def _acquire_process_lock(self) -> None:
        """Wait for the writers of other processes, unless this process has the lock already."""
        queue, locks = self._queue, self._locks
        clock = asyncio.get_running_loop().time
        if queue.process_lock is not None and clock() < queue.process_lock_until_s:
            return
        if not self.was_contended and clock() > locks.contended.get(self._path, 0.0):
            locks.contended.pop(self._path, None)
            return
        process_lock = locks.interprocess_lock(self._path)
        if process_lock is None:
            return
        # The next plan must not build on what was planned without this lock.
        process_lock.expect(0)
        await self.wait_for_pending()
        queue.release_interprocess()
        queue.process_lock = process_lock
        if await process_lock.take():
            locks.note_contention(self._path)
        self.was_contended = True  # the previous holder of the lock has probably written
        queue.process_lock_until_s = clock() + MAX_PROCESS_LOCK_S

    def _end(self) -> None:
        """Release the lock, or take the write off the pending ones."""
        queue = self._queue
        if self._chain is None:  # not released early, so the lock is still held
            if queue.process_lock is not None:  # others may wait for this write, which failed
                queue.process_lock.expect(max(0, queue.writers - 1 - queue.pending))
            queue.lock.release()
            return
        queue.pending -= 1
        # The rest of a failed chain fails by itself, since each write has the one before it as a
        # precondition. Later writers must not join the chain. If they have begun a new one
        # already, that one does not depend on this write and stays.
        has_failed = not self._committed and queue.chain is self._chain
        # Without pending writes, the expected state has been stored, and other processes may have
        # changed it since: the next writer must read the store.
        if has_failed or not queue.pending:
            queue.chain = _Chain()
        if not queue.pending and queue.none_pending is not None:
            queue.none_pending.set()

    def _leave(self) -> None:
        self._queue.writers -= 1
        if not self._queue.writers:
            self._queue.release_interprocess()
            del self._locks.queues[self._path]


class WriteLocks:
    """The write locks of a process, one queue for each resource that is being written."""

    def __init__(
        self, interprocess_lock: Callable[[ResourcePath], InterprocessLock | None]
    ) -> None:
        """``interprocess_lock`` makes a lock among the writers of all processes, if there are
        several."""
        self.interprocess_lock = interprocess_lock
        self.queues: dict[ResourcePath, _Queue] = {}
        self.contended: dict[ResourcePath, float] = {}
        """Resources that other processes write to, and how long to expect that, by the clock of the
        loop."""

    def of(self, path: ResourcePath) -> WriteLock:
        """A lock on the resource, which is acquired by entering its context."""
        return WriteLock(self, path)

    def is_taken(self, path: ResourcePath) -> bool:
        """Whether writers of other processes have locked the resource."""
        process_lock = self.interprocess_lock(path)
        return process_lock is not None and process_lock.is_taken()

    def note_contention(self, path: ResourcePath) -> None:
        """From now on and for a while, lock this resource against other processes, too."""
        if len(self.contended) >= MAX_CONTENDED:
            self.contended.clear()
        self.contended[path] = asyncio.get_running_loop().time() + CONTENDED_S


class AclListener(Protocol):
    """Receives changes of access rules."""

    def __call__(
        self,
        agent: Identity | None,
        *,
        stored: Sequence[ResourcePath],
        deleted: Sequence[ResourcePath],
    ) -> None:
        """Note that an agent has stored or deleted these ACLs. Raises nothing."""


class WriteObserver(Protocol):
    """Learns of the writes that requests have made."""

    def committed(self, agent: Identity | None, write: Write) -> None:
        """Called once a write is committed. Raises nothing."""


class WriteExtension(Protocol):
    """Adds to the writes that requests make, before they are committed."""

    async def extended(self, agent: Identity | None, write: Write) -> Write:
        """The write to commit, with what the extension adds to it, such as records.

        Called for each attempt to commit; what it raises refuses the request.
        """


MAX_ATTEMPTS = 64
"""How often an operation is attempted. Writers of one process wait for each other, so only writers
in other workers can intervene, and each time that happens one of them has succeeded."""

Admit = Callable[[ResourceRequest, Metadata | None], Awaitable[TargetState]]
"""Reads the state of the target, authorizes the request and evaluates its conditional headers. The
metadata, if given, is what a pending write will produce and replaces what is stored. Raises
RequestRefused."""

MakePlan = Callable[[TargetState], Awaitable[Plan]]
"""Plans the write on an admitted state. Raises RequestRefused, and Superseded if the stored version
changed while it was read."""


class Committer:
    """Commits planned writes."""

    def __init__(
        self,
        store: ResourceStore,
        *,
        quota_bytes: Callable[[], int],
        clock: Clock,
        acl_listener: AclListener,
        observers: Sequence[WriteObserver] = (),
        extensions: Sequence[WriteExtension] = (),
    ) -> None:
        """``quota_bytes`` tells the quota of each pod without one of its own; 0 for none."""
        self._store = store
        self._quota_bytes = quota_bytes
        self._clock = clock
        self._acl_listener = acl_listener
        self._observers = tuple(observers)
        self._extensions = tuple(extensions)
        self._locks = WriteLocks(store.interprocess_lock)

    async def commit(
        self,
        request: ResourceRequest,
        admitted: TargetState,
        admit: Admit,
        plan: MakePlan,
        *,
        lock_on: ResourcePath | None = None,
    ) -> Outcome:
        """Plan on the admitted state and commit; admit and plan again while preconditions fail.

        ``lock_on`` is the resource whose writers wait for each other, by default the target. Raises
        QuotaExceeded, Conflict for a container that is not empty, and Overloaded after
        MAX_ATTEMPTS.
        """
        path = lock_on or request.operation.target
        current: TargetState | None = admitted
        for _ in range(MAX_ATTEMPTS):
            async with self._locks.of(path) as lock:
                if lock.was_contended:  # the state that was read is likely to be out of date
                    current = None
                until_ms = request.decided_until_ms
                if until_ms is not None and until_ms <= self._clock.now_ms():
                    current = None  # a rule has ended while the content arrived
                planned = await _planned(request, lock, current, admit, plan)
                outcome = None if planned is None else await self._try(request, lock, planned)
            if outcome is not None:
                return outcome
            # The lock was released, so writers that waited come first: a writer that tries again
            # cannot starve the others.
            current = None
        raise Overloaded(ResourceCodes.TOO_MANY_WRITES)

    async def _try(
        self, request: ResourceRequest, lock: WriteLock, planned: Plan
    ) -> Outcome | None:
        """Commit one plan; ``None`` if a precondition no longer held."""
        write = planned.with_preconditions(
            request.preconditions, default_quota_bytes=self._quota_bytes()
        )
        if request.records:
            write = replace(write, records=write.records + request.records)
        for extension in self._extensions:
            write = await extension.extended(request.agent, write)
        after = planned.outcome.metadata
        # Only documents: ACLs decide about the requests that follow, so no decision may be based on
        # an ACL that is not committed.
        if after is not None and after.kind is ResourceKind.DOCUMENT:
            lock.release_early(after)
        else:
            lock.keep()
        # Nothing may be awaited between these two: the writes that build on this one must follow
        # it in the store's queue.
        ended = await self._store.commit(write)
        if isinstance(ended, Committed):
            lock.mark_committed()
            self._tell(request.agent, write)
            if ended.nearly_full is None:
                return planned.outcome
            return replace(planned.outcome, nearly_full=ended.nearly_full)
        if isinstance(ended, OverQuota):
            raise quota_exceeded(ended)
        if isinstance(ended.precondition, NoMembers):
            raise Conflict(ResourceCodes.NOT_EMPTY)
        lock.mark_overtaken()
        return None

    async def commit_tree(self, agent: Identity | None, write: Write) -> Committed | None:
        """Commit a write without locks; ``None`` if a precondition does not hold. Raises
        QuotaExceeded."""
        if write.puts:
            write = replace(write, default_quota_bytes=self._quota_bytes())
        for extension in self._extensions:
            write = await extension.extended(agent, write)
        ended = await self._store.commit(write)
        if isinstance(ended, OverQuota):
            raise quota_exceeded(ended)
        if not isinstance(ended, Committed):
            return None
        self._tell(agent, write)
        return ended

    def _tell(self, agent: Identity | None, write: Write) -> None:
        """Tell listeners of a committed write, and of the ACLs in it."""
        stored: list[ResourcePath] = []
        deleted: list[ResourcePath] = []
        for put in write.puts:
            if put.kind is ResourceKind.ACL:
                stored.append(put.path)  # noqa: PERF401 - as a comprehension, a call in each write
        for path in write.deletes:
            if path.endswith(ACL_SUFFIX):
                deleted.append(path)  # noqa: PERF401 - as above
        if stored or deleted:
            self._acl_listener(agent, stored=stored, deleted=deleted)
        for observer in self._observers:
            observer.committed(agent, write)


def quota_exceeded(ended: OverQuota) -> QuotaExceeded:
    """The error for a write that the quota does not allow."""
    return QuotaExceeded(
        used_bytes=ended.used_bytes,
        limit_bytes=ended.limit_bytes,
        needed_bytes=ended.needed_bytes,
    )


async def _planned(
    request: ResourceRequest,
    lock: WriteLock,
    current: TargetState | None,
    admit: Admit,
    plan: MakePlan,
) -> Plan | None:
    """Plan on the expected state if there is one, else on the stored state.

    ``current`` is the stored state as it was read before the lock was acquired, or ``None`` to read
    it again. Returns ``None`` if the stored version changed while it was read.
    """
    if lock.expected is not None:
        with suppress(RequestRefused, Superseded):
            return await plan(await admit(request, lock.expected))
        # The refusal is based on a state that may never be stored, or the plan needs a body that is
        # not stored yet: decide again once the store holds the outcome.
        await lock.wait_for_pending()
        current = None
    try:
        return await plan(await admit(request, None) if current is None else current)
    except Superseded:
        return None
