"""Which rows did a batch of this process change, and from which state to which?

A reader keeps rows of one state of the database. The database itself counts every change of a row
of ``resources``, ``pods`` and ``tokens``, by triggers, whoever makes it: another worker, another
program, another version of this one. The count goes up in the transaction of the change and is
undone with it, so no two states that were ever committed share a count and differ in those rows.

A batch therefore leads from the rows of count ``before`` to those of count ``after`` and from no
others to no others. Who keeps the rows of ``before`` and finds the database at ``after`` has seen
all that happened in between, and may take the changed rows over instead of forgetting all.

Only what has been committed is told: an undone batch's counts are given again, to other changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import apsw

from podstead.core.identifiers import ResourcePath
from podstead.storage.state import ResourceRow, State

MAX_UNREAD: Final = 16
"""Batches that are remembered for the reader. It looks between almost any two."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What one committed batch made of the rows that readers keep.

    ``resources`` are the changed ones as they are after it, ``None`` for those that are gone;
    ``others`` tells that pods or tokens changed too.
    """

    before: int
    after: int
    resources: Mapping[ResourcePath, ResourceRow | None]
    others: bool


ChangeQueue = deque[RowChanges]
"""Batches that the reader has not taken in, oldest first: appended by the writer's thread, taken by
the reader's; either is one step that no other thread comes into."""


def new_change_queue() -> ChangeQueue:
    """An empty queue; what a reader does not come for is dropped, and it reads again."""
    return deque(maxlen=MAX_UNREAD)


def read_row_count(connection: apsw.Connection) -> int:
    """How often rows were changed, as this connection sees it now. Raises apsw.Error."""
    count: int = connection.execute("SELECT value FROM counters WHERE name = 'rows'").get
    return count


def row_changes(state: State, *, before: int, after: int) -> RowChanges:
    """What deciding a batch has changed in its state."""
    return RowChanges(
        before,
        after,
        {path: state.resources[path] for path in state.changed_paths},
        others=bool(state.pods or state.tokens),
    )
