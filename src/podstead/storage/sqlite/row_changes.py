"""Which rows did a batch of this process change, and between which states of the database?

A reader caches rows of one state of the database. Triggers in the database count every change of a
row of ``resources``, ``pods`` and ``tokens``, whether by this worker, another worker, or another
program. The count increases in the transaction of the change and is rolled back with it, so two
committed states with the same count never differ in these rows.

A batch therefore leads from exactly the rows of count ``before`` to exactly those of count
``after``. If a reader has cached the rows of ``before`` and finds the database at ``after``,
nothing else has happened in between, and it can apply the changed rows instead of clearing its
cache.

Only committed batches are queued: after a rollback, the same counts are used for other changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

import apsw
import msgspec

from podstead.core.identifiers import ResourcePath
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
