"""Counts observations in buckets with fixed upper bounds."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts observations. ``counts`` has one more element than ``bounds``, for values above the
    last one."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """``bounds`` are the largest values of the buckets, in ascending order."""
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
