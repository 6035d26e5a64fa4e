"""A fair lock among the processes that share a database: they write in the order of their requests.

SQLite lets one process write at a time and tells the others only that it is busy. Whoever happens
to ask right after a commit is next, so a process that writes all the time can keep another one
waiting for hundreds of its own writes. Therefore writers queue up: each takes a number, and writes
once the writer with the number before it has finished. A writer that has finished and wants to
write again comes after all those that wait.

Writers of one resource queue up in the same way while they come from several processes
(:class:`ResourceLock`): a write is planned on what is stored, so plans made at the same time in two
processes are made in vain in one of them.

The number that was taken last is in a small file, and the holder of a number keeps the byte of that
number in the file locked. The kernel releases the lock if a process ends in whatever way, so a dead
writer never blocks the queue. The queue is about fairness only: SQLite's own lock still protects
the data, and a writer that cannot use the queue, or that has waited too long for another, writes
without it.

A writer that waits looks from time to time whether the one before it has finished. The workers of a
server, which share a :class:`ReleaseSignals`, also wake each other, so that no time passes between
two turns.
"""

import asyncio
import fcntl
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final

from podstead.core.identifiers import ResourcePath

_PRIVATE: Final = 0o600
_LOCK: Final = struct.Struct("hhqqi4x")
"""The C structure flock where addresses have 64 bits: type, origin, start, length and process."""

_LAST: Final = struct.Struct("=q")
_QUEUE_BITS: Final = 48
"""The bits of a number; those above are the number of the queue."""

_ATTEMPTS: Final = 8
"""How often a number is tried for, since others may take one at the same moment."""

RESOURCE_QUEUES: Final = 1023
"""Among how many queues resources are divided. Writers of two resources in one queue only wait
longer."""

INTERVALS_S: Final = (0.001, 0.002, 0.004, 0.008)
"""After which times a waiting writer looks whether it has the lock; the last is repeated."""

SIGNALS: Final = 32
"""How many writers can wait for a signal of their own."""

MAX_RESOURCE_WAIT_S: Final = 0.5
"""How long a writer waits for the lock of a resource before it writes without it."""

IS_AVAILABLE: Final = sys.platform == "linux" and sys.maxsize > 2**32
"""Whether the system has locks that belong to an open file and not to a process, so that two
writers of one process can wait for each other, too."""


class ReleaseSignals:
    """Wakes the writer whose turn has come, in whichever worker. Created before they are forked.

    A number determines the descriptor that its holder listens to, so nobody needs to know which
    worker that is. If two writers share one, a signal may reach the wrong one of them; the other
    one looks by itself a few milliseconds later.
    """

    __slots__ = ("_descriptors",)

    def __init__(self) -> None:
        self._descriptors: list[int] = []
        if IS_AVAILABLE:
            with suppress(OSError):  # too many files are open
                for _ in range(SIGNALS):
                    self._descriptors.append(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))

    def listen(
        self,
        loop: asyncio.AbstractEventLoop,
        queue: int,
        number: int,
        callback: Callable[[], None],
    ) -> Callable[[], object]:
        """Call ``callback`` at each signal for the holder of a number, and return what ends that.

        There may be signals for others, and of earlier times.
        """
        if not self._descriptors:
            return lambda: None
        descriptor = self._descriptor(queue, number)

        def signalled() -> None:
            with suppress(BlockingIOError):  # another writer was faster
                os.eventfd_read(descriptor)
            callback()

        loop.add_reader(descriptor, signalled)
        return partial(loop.remove_reader, descriptor)

    def send(self, queue: int, number: int) -> None:
        """Wake the holder of a number. Neither blocks nor raises."""
        if self._descriptors:
            with suppress(OSError):
                os.eventfd_write(self._descriptor(queue, number), 1)

    def _descriptor(self, queue: int, number: int) -> int:
        return self._descriptors[(queue + number) % len(self._descriptors)]

    def close(self) -> None:
        """Release the descriptors, which other processes may go on using."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    __del__ = close


class FairLock:
    """The place of one writer in the queue. Only one thread may use it at a time."""

    __slots__ = (
        "_descriptor",
        "_last",
        "_memory",
        "_number",
        "_queue",
        "_signals",
        "_stop_waiting",
        "others_write",
    )

    def __init__(self, file: Path, queue: int = 0, signals: ReleaseSignals | None = None) -> None:
        """``file`` is the same for all writers of a database, and created if it is missing. It
        holds several queues. ``signals`` is shared by the workers of a server."""
        self._queue = queue
        self._signals = signals
        self._stop_waiting: Callable[[], None] | None = None
        self._number: int | None = None
        self._last = -1
        self.others_write = False
        """Whether another writer has taken a number between the last two of this one."""
        self._descriptor, self._memory = _opened(file, queue + 1)

    def try_acquire(self) -> bool:
        """Whether this writer has the lock. The first call takes a number."""
        if self._memory is None:
            return True
        try:
            if self._number is None:
                self._number = self._take_number(self._memory)
            # The writer before this one keeps its number locked until it has finished.
            return self._number is not None and not _is_locked(
                self._descriptor, self._queue, self._number - 1
            )
        except OSError:  # the system has no memory for locks
            return True

    def call_when_acquired(
        self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None], at_most_s: float
    ) -> None:
        """Call ``callback`` once this writer has the lock, or has waited for ``at_most_s``.

        :meth:`close` prevents it.
        """
        if self.try_acquire():
            callback()
            return
        until_s = loop.time() + at_most_s
        intervals_s = chain(INTERVALS_S, repeat(INTERVALS_S[-1]))
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            timer.cancel()
            if self.try_acquire() or loop.time() >= until_s:
                stop()
                callback()
                return
            timer = loop.call_later(next(intervals_s), look)

        def stop() -> None:
            self._stop_waiting = None
            timer.cancel()
            if stop_listening is not None:
                stop_listening()

        self._stop_waiting = stop
        timer = loop.call_later(next(intervals_s), look)
        stop_listening = None
        if self._signals is not None and self._number is not None:
            stop_listening = self._signals.listen(loop, self._queue, self._number, look)

    def release(self) -> None:
        """Release the lock, or give up the place in the queue."""
        if self._number is not None:
            number, self._number = self._number, None
            with suppress(OSError):
                self._set_lock(fcntl.F_UNLCK, number)
            memory, signals = self._memory, self._signals
            # Read after the release: whoever takes a number from now on finds it released.
            if (
                signals is not None
                and memory is not None
                and _last_taken(memory, self._queue) > number
            ):
                signals.send(self._queue, number + 1)

    def close(self) -> None:
        """Leave the queue for good."""
        self._number = None
        if self._stop_waiting is not None:
            self._stop_waiting()
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take_number(self, memory: mmap.mmap) -> int | None:
        """The next number; ``None`` if others were faster each time. Raises OSError."""
        for _ in range(_ATTEMPTS):
            last = _last_taken(memory, self._queue)
            number = last + 1
            try:
                self._set_lock(fcntl.F_WRLCK, number)
            except (BlockingIOError, PermissionError):  # another writer is just taking it
                continue
            # Only who holds the lock on the next number writes, so this cannot change any more.
            if _last_taken(memory, self._queue) == last:
                _LAST.pack_into(memory, self._queue * _LAST.size, number)
                self.others_write = self._last not in {-1, last}
                self._last = number
                return number
            self._set_lock(fcntl.F_UNLCK, number)
        return None

    def _set_lock(self, kind: int, number: int) -> None:
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _lock(kind, self._queue, number))


def _opened(file: Path, queues: int) -> tuple[int, mmap.mmap | None]:
    """The file, with room for so many queues, and its content; -1 and ``None`` if it cannot be
    used."""
    descriptor = -1
    if IS_AVAILABLE:
        with suppress(OSError):  # the disk may be full
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
            size = queues * _LAST.size
            if os.fstat(descriptor).st_size < size:
                # Two processes may both do this, so it must not set back a number.
                os.posix_fallocate(descriptor, 0, size)
            return descriptor, mmap.mmap(descriptor, size)
    return descriptor, None


def _last_taken(memory: mmap.mmap, queue: int) -> int:
    last: int = _LAST.unpack_from(memory, queue * _LAST.size)[0]
    return last


def _is_locked(descriptor: int, queue: int, number: int) -> bool:
    """Whether a number is locked by another holder. Raises OSError."""
    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, queue, number))
    return int(_LOCK.unpack(answer)[0]) != fcntl.F_UNLCK


def _lock(kind: int, queue: int, number: int) -> bytes:
    return _LOCK.pack(kind, os.SEEK_SET, (queue << _QUEUE_BITS) + number, 1, 0)


class ResourceQueues:
    """The queues of all resources, which a process keeps open."""

    def __init__(self, file: Path, signals: ReleaseSignals | None = None) -> None:
        """The parameters are those of :class:`FairLock`."""
        self.file = file
        self.signals = signals
        self._descriptor, self._memory = _opened(file, 1 + RESOURCE_QUEUES)
        # The last numbers of queues, whose holders have finished.
        self._finished: dict[int, int] = {}

    def close(self) -> None:
        """Release everything."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def is_taken(self, queue: int) -> bool:
        """Whether a writer in this queue has not finished. Nearly always without a system call."""
        memory = self._memory
        if memory is None:
            return False
        last = _last_taken(memory, queue)
        if self._finished.get(queue) == last:
            return False
        with suppress(OSError):  # the system has no memory for locks
            if _is_locked(self._descriptor, queue, last):
                return True
        self._finished[queue] = last
        return False


class ResourceLock:
    """Implements InterprocessLock: the place of a process among the writers of one resource."""

    __slots__ = ("_lock", "_queue", "_queues", "expect")

    def __init__(
        self,
        queues: ResourceQueues,
        path: ResourcePath,
        expect: Callable[[int], None] = lambda _: None,
    ) -> None:
        """``expect`` is told how many writes follow the next one."""
        self.expect = expect
        self._queues = queues
        self._queue = 1 + zlib.crc32(path.encode()) % RESOURCE_QUEUES
        self._lock: FairLock | None = None

    def is_taken(self) -> bool:
        return self._queues.is_taken(self._queue)

    async def take(self) -> bool:
        self._lock = lock = FairLock(self._queues.file, self._queue, self._queues.signals)
        if lock.try_acquire():
            return False
        loop, come = asyncio.get_running_loop(), asyncio.Event()
        lock.call_when_acquired(loop, come.set, MAX_RESOURCE_WAIT_S)
        await come.wait()
        return True

    def end(self) -> None:
        if self._lock is not None:
            self._lock.release()  # not only closed: a child process may have inherited the file
            self._lock.close()
            self._lock = None
