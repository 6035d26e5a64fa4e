"""The rows that other commits have changed, for the cache of a reader.

A reader caches rows of one state of the database. Triggers in the database count every change of a
row of ``resources``, ``pods`` and ``tokens``, whether by this worker, another worker, or another
program. The count increases in the transaction of the change and is rolled back with it, so two
committed states with the same count never differ in these rows.

A batch therefore leads from exactly the rows of count ``before`` to exactly those of count
``after``. If a reader has cached the rows of ``before`` and finds the database at ``after``,
nothing else has happened in between, and it can apply the changed rows instead of clearing its
cache. Only committed batches are queued: after a rollback, the same counts are used for other
changes.

SQLite only tells a worker that another process has committed, not what. So each worker puts the row
changes of its batches into memory that all share (:class:`SharedChanges`). A reader looks there for
the batch that begins where its cached rows end. If the slot contains another batch by now, or not
yet this one, the reader clears its cache: memory is only saved work.

:class:`DataVersion` asks SQLite once in each turn of the event loop whether anybody has committed.
The answer is shared by everything that runs until the loop comes to the callback that ends it.
Nobody can tell the difference to asking every time:

- The callback is queued *before* SQLite is asked, and the loop runs its callbacks in the order in
  which they were queued. So whatever the loop runs before it was queued before SQLite was asked,
  and a callback never gets an answer that is older than itself.
- The HTTP server queues a callback for each request after it has received the request, and
  ``WebSocket`` does so for each message. So if a commit was acknowledged, by any worker, before a
  client sent a request, SQLite is asked after that commit.
- A commit of this worker is acknowledged by a callback, which its thread queues after the commit.

Reads that SQLite itself answers are of its newest state. After each of them, the answer is no
longer valid (:meth:`DataVersion.ask_again`), so that the reads of a task never go back in time.
"""

import asyncio
import mmap
import struct
import zlib
from collections import deque
from collections.abc import Mapping
from typing import Final

import apsw
import msgspec
from msgspec.structs import astuple

from podstead.core.identifiers import ResourcePath
from podstead.storage.sqlite.fair_lock import ReleaseSignals
from podstead.storage.state import ResourceRow, State

MAX_UNREAD: Final = 16
"""The maximum number of queued batches. The reader usually takes each before the next one."""


class RowChanges(msgspec.Struct, frozen=True):
    """The changes that one committed batch made to the rows that readers cache.

    ``resources`` are the changed rows after the batch, ``None`` for deleted ones; ``others`` means
    that pods or tokens changed, too.
    """

    before: int
    after: int
    resources: Mapping[ResourcePath, ResourceRow | None]
    others: bool


ChangeQueue = deque[RowChanges]
"""Batches that the reader has not applied yet, oldest first. The writer's thread appends, the
reader's thread removes; both operations are atomic."""


def new_change_queue() -> ChangeQueue:
    """An empty queue. If it overflows, the oldest batches are dropped, and the reader reads
    again."""
    return deque(maxlen=MAX_UNREAD)


def read_row_count(connection: apsw.Connection) -> int:
    """The count of row changes, as this connection sees it now. Raises apsw.Error."""
    count: int = connection.execute("SELECT value FROM counters WHERE name = 'rows'").get
    return count


def row_changes(state: State, *, before: int, after: int) -> RowChanges:
    """The row changes of a batch that has been decided on ``state``."""
    return RowChanges(
        before,
        after,
        {path: state.resources[path] for path in state.changed_paths},
        others=bool(state.pods or state.dropped_pods or state.quotas or state.tokens),
    )


SLOTS: Final = 64
SLOT_BYTES: Final = 16 * 1024
"""Room for the rows of some forty writes. Larger batches are not shared."""

# The count of row changes before the batch, then the length and checksum of what follows.
_HEADER: Final = struct.Struct("=qII")
_MAX_BYTES: Final = SLOT_BYTES - _HEADER.size

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder()


class SharedChanges:
    """The newest row changes of all workers. Created before they are forked.

    The count of row changes before a batch determines its slot. A batch is put there after its
    commit, so what is found there has happened; a checksum detects a slot that is being written,
    perhaps by two workers at once, or that a worker was writing when it was killed.
    """

    __slots__ = ("_memory", "signals")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SLOTS * SLOT_BYTES)
        self.signals = ReleaseSignals()
        """How workers that wait for each other's writes wake each other."""

    def put(self, changes: RowChanges) -> None:
        """Share the changes of a batch that has just been committed."""
        rows = [
            (path, None if row is None else astuple(row)) for path, row in changes.resources.items()
        ]
        content = _encoder.encode((changes.before, changes.after, changes.others, rows))
        if len(content) <= _MAX_BYTES:
            header = _HEADER.pack(changes.before, len(content), zlib.crc32(content))
            start = changes.before % SLOTS * SLOT_BYTES
            self._memory[start : start + len(header) + len(content)] = header + content

    def get(self, before: int) -> RowChanges | None:
        """The changes of the batch that begins at this count, if they are there."""
        if before < 0:
            return None
        start = before % SLOTS * SLOT_BYTES
        found, length, checksum = _HEADER.unpack_from(self._memory, start)
        if found != before or not 0 < length <= _MAX_BYTES:
            return None
        start += _HEADER.size
        content = self._memory[start : start + length]
        if zlib.crc32(content) != checksum:
            return None
        # Only what the checksum covers counts: the header may be that of another batch.
        began, after, others, rows = _decoder.decode(content)
        if began != before:
            return None
        resources = {path: None if row is None else ResourceRow(*row) for path, row in rows}
        return RowChanges(before, after, resources, others)


class DataVersion:
    """The data version of one connection. Used from one event loop only."""

    __slots__ = ("_answer", "_connection", "_is_ending", "_loop")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._answer: int | None = None
        self._is_ending = False

    def current(self) -> int:
        """A number that changes with every commit of another connection. Raises apsw.Error."""
        answer = self._answer
        if answer is None:
            if not self._is_ending:
                self._loop.call_soon(self._end)  # before asking: see above
                self._is_ending = True
            answer = self._answer = self._ask()
        return answer

    def ask_again(self) -> None:
        """Ask again before the next use, even in this turn."""
        self._answer = None

    def _ask(self) -> int:
        answer: int = self._connection.execute("PRAGMA data_version").get
        return answer

    def _end(self) -> None:
        self._answer = None
        self._is_ending = False
