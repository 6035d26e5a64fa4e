"""Write locks serialize the writers of one resource within a process.

Correctness does not depend on these locks: the commit checks the preconditions of each write in its
transaction. The locks only keep writers from planning repeatedly on states that have changed since.
A writer does not hold its lock while the disk is busy. It releases the lock early, together with
the state that its write will produce, and the next writer plans on that state. Many writes, each
of which has the one before it as a precondition, therefore share one commit.
"""

from __future__ import annotations

import asyncio
from typing import Self

import msgspec

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Metadata


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


class WriteLock:
    """The lock of one writer on a resource, as a context manager that spans the whole write.

    A class, because a generator-based context manager would take three times as long.
    """

    __slots__ = ("_chain", "_committed", "_path", "_queue", "_queues", "was_contended")

    def __init__(self, queues: dict[ResourcePath, _Queue], path: ResourcePath) -> None:
        self._queues = queues
        self._path = path
        self._chain: _Chain | None = None
        self._committed = False

    async def __aenter__(self) -> Self:
        """Wait for the lock."""
        queue = self._queues.get(self._path)
        if queue is None:
            queue = self._queues[self._path] = _Queue()
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
        self._chain = queue.chain
        queue.lock.release()

    def mark_committed(self) -> None:
        """Record that the write was committed.

        Without this call the write is treated as failed, and later writers read the store instead
        of building on it. That is always safe and costs one read.
        """
        self._committed = True

    def _end(self) -> None:
        """Release the lock, or take the write off the pending ones."""
        queue = self._queue
        if self._chain is None:  # not released early, so the lock is still held
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
            del self._queues[self._path]


class WriteLocks:
    """The write locks of a process, one queue for each resource that is being written."""

    def __init__(self) -> None:
        self._queues: dict[ResourcePath, _Queue] = {}

    def of(self, path: ResourcePath) -> WriteLock:
        """A lock on the resource, which is acquired by entering its context."""
        return WriteLock(self._queues, path)
