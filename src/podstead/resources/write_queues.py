"""Who writes a resource next, and on what state does that writer decide?

The writers of one resource in one process queue here. Correctness does not depend on it: the commit
checks in its transaction what each write relied on, and so decides who wins. The queue spares
writers from deciding again and again on states that are already gone. It never waits for the disk:
a writer passes its turn on together with the state that its write will leave, and the next writer
decides on that state. So many writes, each relying on the one before it, share one commit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Self

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Metadata


@dataclass(slots=True, eq=False)
class _Chain:
    """Writes that rely on one another; ``expected`` is the state that the last of them leaves.

    Compared by identity: a write that fails late must not end a chain begun after its own.
    """

    expected: Metadata | None = None


@dataclass(slots=True)
class _Queue:
    """The writers of one resource: waiting, deciding, or with a write under way.

    Whoever holds ``lock`` decides. ``writers`` counts all three kinds, ``under_way`` the last.
    """

    # asyncio.Lock is fair: writers decide in the order in which they came.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    writers: int = 0
    under_way: int = 0
    chain: _Chain = field(default_factory=_Chain)
    all_ended: asyncio.Event | None = None


class WriteTurn:
    """One writer's turn on a resource, as a context that ends when the write has ended.

    A class and not a generator, which would take three times as long for every write.
    """

    __slots__ = ("_chain", "_path", "_queue", "_queues", "_stands", "had_to_wait")

    def __init__(self, queues: dict[ResourcePath, _Queue], path: ResourcePath) -> None:
        self._queues = queues
        self._path = path
        self._chain: _Chain | None = None
        self._stands = False

    async def __aenter__(self) -> Self:
        """Wait for the turn."""
        queue = self._queues.get(self._path)
        if queue is None:
            queue = self._queues[self._path] = _Queue()
        self._queue = queue
        self.had_to_wait = queue.writers > 0
        """Whether the state seen before the turn may be gone."""
        # Counted before the wait, so that the queue is not removed while somebody waits in it.
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
        """The state that the writes under way will leave.

        ``None`` if there are none, or if one of them failed: then the store has to be read.
        """
        return self._queue.chain.expected

    async def alone(self) -> None:
        """Wait until no write is under way, so that the store holds the current state."""
        if self._queue.under_way:
            # One event is enough, and it cannot be missed: this writer holds the lock, so no other
            # one can wait here, and no further write can get under way.
            self._queue.all_ended = asyncio.Event()
            await self._queue.all_ended.wait()

    def pass_on(self, expected: Metadata) -> None:
        """Let the next writer decide on the state that this write will leave.

        Hand the write to the store at once, before anything is awaited, so that the store gets it
        before the writes that rely on it.
        """
        queue = self._queue
        queue.chain.expected = expected
        queue.under_way += 1
        self._chain = queue.chain
        queue.lock.release()

    def stands(self) -> None:
        """Note that the write was committed. Without this, it is treated as failed, and no later
        writer builds on it: an outcome that nobody learned costs one more read, no more."""
        self._stands = True

    def _end(self) -> None:
        """Give the turn back, or the place among the writes under way."""
        queue = self._queue
        if self._chain is None:  # never passed on, so the lock is still held
            queue.lock.release()
            return
        queue.under_way -= 1
        # The rest of a failed chain fails by itself, since each write relies on the one before.
        # Writers that come now must not join it. If they have begun a new chain already, that one
        # does not rest on this write and stays.
        has_failed = not self._stands and queue.chain is self._chain
        # With nothing under way, what was expected is stored, and other processes may have changed
        # it since: the next writer reads.
        if has_failed or not queue.under_way:
            queue.chain = _Chain()
        if not queue.under_way and queue.all_ended is not None:
            queue.all_ended.set()

    def _leave(self) -> None:
        self._queue.writers -= 1
        if not self._queue.writers:
            del self._queues[self._path]


class WriteQueues:
    """One queue per resource that someone is writing."""

    def __init__(self) -> None:
        self._queues: dict[ResourcePath, _Queue] = {}

    def of(self, path: ResourcePath) -> WriteTurn:
        """A turn on the resource, to be entered as a context."""
        return WriteTurn(self._queues, path)
