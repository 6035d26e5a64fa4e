"""Counts the requests that this worker has answered, and how long they took.

Requests are counted by route, method and status. A route is the pattern of a path, never the path
of a request, so that the number of counters is bounded whatever clients send. Responses from the
response cache are counted at the least cost that is possible, an addition, and are not timed: they
take some ten microseconds.
"""

from collections.abc import Iterator
from typing import Final

from podstead.core.histogram import Histogram

DURATION_BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

RESOURCES: Final = "resources"
UNREADABLE: Final = "unreadable"
"""The route of requests that were refused before their path was known."""
OTHER_METHOD: Final = "other"


class ResponseCounter:
    """The number of responses to requests with one route, method and status."""

    __slots__ = ("cached", "made")

    def __init__(self) -> None:
        self.made = 0
        self.cached = 0
        """Those that came from the response cache."""


UNCOUNTED: Final = ResponseCounter()
"""Of responses that are not sent yet."""


class RequestCounts:
    """The requests of one worker."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, str, int], ResponseCounter] = {}
        self._durations: dict[tuple[str, str], Histogram] = {}
        # What a response is counted in, found at once.
        self._timed: dict[tuple[str, str, int], tuple[ResponseCounter, Histogram]] = {}

    def count(self, route: str, method: str, status: int) -> ResponseCounter:
        """Count one response."""
        tally = self._tallies.get((route, method, status))
        if tally is None:
            tally = self._tallies[route, method, status] = ResponseCounter()
        tally.made += 1
        return tally

    def note(self, route: str, method: str, status: int, took_s: float) -> ResponseCounter:
        """Count one response, and how long it took until it began."""
        timed = self._timed.get((route, method, status))
        if timed is None:
            timed = self._timed[route, method, status] = self._begin(route, method, status)
        tally, durations = timed
        tally.made += 1
        durations.observe(took_s)
        return tally

    def _begin(self, route: str, method: str, status: int) -> tuple[ResponseCounter, Histogram]:
        tally = self._tallies.setdefault((route, method, status), ResponseCounter())
        durations = self._durations.setdefault((route, method), Histogram(DURATION_BOUNDS_S))
        return tally, durations

    def tallies(self) -> Iterator[tuple[tuple[str, str, int], ResponseCounter]]:
        """All counts, by route, method and status."""
        yield from self._tallies.items()

    def durations(self) -> Iterator[tuple[tuple[str, str], list[int], float]]:
        """The counts of the buckets and the sum of seconds, by route and method. Responses from the
        cache are in the first bucket and add nothing to the sum."""
        cached: dict[tuple[str, str], int] = {}
        for (route, method, _), tally in self._tallies.items():
            cached[route, method] = cached.get((route, method), 0) + tally.cached
        for key, histogram in self._durations.items():
            first, *others = histogram.counts
            yield key, [first + cached[key], *others], histogram.total
