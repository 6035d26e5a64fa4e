"""Who writes a resource next, and on what state do they decide? Writers of one queue in a process.

The commit alone decides who wins (its reliances are checked in the transaction); queueing spares
writers of one resource from deciding again and again on states that are gone. Nobody in the queue
waits for the disk: a writer passes its turn on with what its write is to leave, and the next one
decides on that. So the writes of many share one commit, each relying on the one before it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Self

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Metadata


@dataclass(slots=True, eq=False)
class _Chain:
    """Writes that rely on one another; ``expected`` is what the last of them is to leave."""

    expected: Metadata | None = None


@dataclass(slots=True)
class _Queue:
    """The writers of one resource: waiting, deciding, or with a write under way."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    writers: int = 0
    under_way: int = 0
    chain: _Chain = field(default_factory=_Chain)
    all_ended: asyncio.Event | None = None


class Turn:
    """One writer's turn on a resource, had in its context, whose end is the end of the write.

    A class and no generator, which would take three times as long for every write.
    """

    __slots__ = ("_chain", "_path", "_queue", "_queues", "_stands", "had_to_wait")

    def __init__(self, queues: dict[ResourcePath, _Queue], path: ResourcePath) -> None:
        self._queues = queues
        self._path = path
        self._chain: _Chain | None = None
        self._stands = False

    async def __aenter__(self) -> Self:
        """Wait for it."""
        queue = self._queues.get(self._path)
        if queue is None:
            queue = self._queues[self._path] = _Queue()
        self._queue = queue
        self.had_to_wait = queue.writers > 0
        """Whether what was seen before the turn may be gone."""
        queue.writers += 1
        try:
            await queue.lock.acquire()
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._end()
        self._leave()

    @property
    def expected(self) -> Metadata | None:
        """What the writes under way are to leave; ``None`` if the store tells, or nobody knows."""
        return self._queue.chain.expected

    async def alone(self) -> None:
        """Wait until no write is under way any more, so that the store tells what is there."""
        if self._queue.under_way:
            self._queue.all_ended = asyncio.Event()
            await self._queue.all_ended.wait()

    def pass_on(self, expected: Metadata) -> None:
        """Let the next one decide on what this write is to leave. The write must be given to the
        store at once, before anything is awaited, so that it comes before those relying on it."""
        queue = self._queue
        queue.chain.expected = expected
        queue.under_way += 1
        self._chain = queue.chain
        queue.lock.release()

    def stands(self) -> None:
        """Note that the write was committed; else nobody goes on from what it was to leave."""
        self._stands = True

    def _end(self) -> None:
        """Give the turn back, or the place among the writes under way."""
        queue = self._queue
        if self._chain is None:
            queue.lock.release()
            return
        queue.under_way -= 1
        has_failed = not self._stands and queue.chain is self._chain
        if has_failed or not queue.under_way:
            queue.chain = _Chain()
        if not queue.under_way and queue.all_ended is not None:
            queue.all_ended.set()

    def _leave(self) -> None:
        self._queue.writers -= 1
        if not self._queue.writers:
            del self._queues[self._path]


class Turns:
    """One queue per resource that someone is writing."""

    def __init__(self) -> None:
        self._queues: dict[ResourcePath, _Queue] = {}

    def of(self, path: ResourcePath) -> Turn:
        """One's turn on the resource, to be waited for and had as a context."""
        return Turn(self._queues, path)
