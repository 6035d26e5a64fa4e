"""How are commits counted? By every engine in the same buckets."""

from __future__ import annotations

from typing import Final

import msgspec

from podstead.core.histogram import Histogram

BATCH_BOUNDS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
COMMIT_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class CommitFigures(msgspec.Struct, frozen=True):
    """What a process has committed: transactions, each with one or more writes.

    ``waiting`` is the number of writes that wait for theirs.
    """

    waiting: int
    sizes: Histogram
    """The number of writes of each transaction."""
    durations_s: Histogram
    """How long each transaction waited for the disk."""
