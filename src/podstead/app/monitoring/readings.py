"""Reads what the parts of a worker have counted, when it is asked for metrics and not before.

Parts count in plain attributes, so a request costs no more for being measured by this module.
"""

import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.app.adapters.audit import LogAudit
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.live_updates import LiveUpdates
from podstead.app.monitoring import families
from podstead.app.monitoring.families import MailCounts, MailOutcome, MetricFamily
from podstead.core.histogram import Histogram
from podstead.idp.audit import AuditEvent
from podstead.storage.protocol import Store
from podstead.web import request_counts, response_cache

_SIGN_INS: Final = {
    AuditEvent.SIGNED_IN: "succeeded",
    AuditEvent.SIGN_IN_FAILED: "failed",
    AuditEvent.SIGN_IN_PAUSED: "paused",
}


class Reading(msgspec.Struct, frozen=True, array_like=True):
    """The value of one time series; of a histogram, the sum and the counts of its buckets."""

    labels: tuple[str, ...]
    value: float
    buckets: tuple[int, ...] = ()


Readings = dict[str, list[Reading]]
"""By the name of the metric."""


def single(family: MetricFamily, value: float) -> Readings:
    """The readings of a metric without labels."""
    return {family.name: [Reading((), value)]}


@dataclass(frozen=True, slots=True)
class WorkerReadings:
    """Reads the counters of one worker. For its event loop."""

    requests: request_counts.RequestCounts
    responses: response_cache.ResponseCache
    store: Store
    foreign: ForeignDocuments
    live_updates: LiveUpdates

    def read(self) -> Readings:
        """All values of this moment. Raises StorageError."""
        hub = self.live_updates.hub
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            **self._requests(),
            **self._commits(),
            **single(families.CACHE_BYTES, self.responses.used_bytes),
            families.OUTBOUND.name: [
                Reading((purpose.value, outcome), count)
                for (purpose, outcome), count in self.foreign.outcomes().items()
            ],
            **single(families.OPEN_CIRCUITS, self.foreign.open_circuits()),
            **single(families.SOCKETS, self.live_updates.open_sockets),
            **single(families.WATCHES, hub.watch_count),
            **single(families.DELIVERED, hub.delivered),
            families.SIGN_INS.name: [
                Reading((outcome,), LogAudit.counts[event]) for event, outcome in _SIGN_INS.items()
            ],
            families.AUDIT_EVENTS.name: [
                Reading((event.value,), count) for event, count in LogAudit.counts.items()
            ],
            families.MAIL.name: [
                Reading((outcome.value,), MailCounts.counts[outcome]) for outcome in MailOutcome
            ],
            **single(families.CPU, usage.ru_utime + usage.ru_stime),
            **single(families.MEMORY, _resident_bytes(usage.ru_maxrss)),
        }

    def _requests(self) -> Readings:
        hits = 0
        made: list[Reading] = []
        for (route, method, status), tally in self.requests.tallies():
            hits += tally.cached
            made.append(Reading((route, method, str(status)), tally.made + tally.cached))
        return {
            families.REQUESTS.name: made,
            families.DURATIONS.name: [
                Reading(labels, total_s, tuple(counts))
                for labels, counts, total_s in self.requests.durations()
            ],
            families.CACHE_LOOKUPS.name: [
                Reading(("hit",), hits),
                Reading(("miss",), self.responses.misses),
            ],
        }

    def _commits(self) -> Readings:
        figures = self.store.commit_figures()
        return {
            **single(families.WAITING_WRITES, figures.waiting),
            families.BATCHES.name: [_histogram(figures.sizes)],
            families.COMMITS.name: [_histogram(figures.durations_s)],
        }


def _histogram(histogram: Histogram) -> Reading:
    return Reading((), histogram.total, tuple(histogram.counts))


def _resident_bytes(peak: int) -> int:
    """The resident memory now; where the system does not tell it, the most so far."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - read on each scrape
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return peak * (1 if sys.platform == "darwin" else 1024)


class Total:
    """Adds up the readings of workers, of which each may end and be replaced.

    What a worker has counted up to its last reading stays counted when it has ended, so that
    counters never fall.
    """

    def __init__(self) -> None:
        self._last: dict[int, Readings] = {}
        self._ended: Readings = {}

    def note(self, worker: int, readings: Readings) -> None:
        """Note what a worker, identified by its process id, has counted."""
        self._last[worker] = readings

    def forget_all_but(self, workers: Iterable[int]) -> None:
        """Note which workers still run."""
        for ended in self._last.keys() - set(workers):
            readings = self._last.pop(ended)
            self._ended = added([self._ended, _counters(readings)])

    def readings(self) -> Readings:
        """The sums."""
        return added([self._ended, *self._last.values()])


def added(several: Iterable[Readings]) -> Readings:
    """The sums of the readings with the same name and labels."""
    sums: dict[str, dict[tuple[str, ...], Reading]] = {}
    for readings in several:
        for name, series in readings.items():
            of_name = sums.setdefault(name, {})
            for each in series:
                known = of_name.get(each.labels)
                of_name[each.labels] = each if known is None else _sum(known, each)
    return {name: list(of_name.values()) for name, of_name in sums.items()}


def _sum(one: Reading, other: Reading) -> Reading:
    buckets = tuple(map(sum, zip(one.buckets, other.buckets, strict=True)))
    return Reading(one.labels, one.value + other.value, buckets)


def _counters(readings: Readings) -> Readings:
    gauges = {
        each.name for each in families.WORKER_FAMILIES if each.kind is families.MetricKind.GAUGE
    }
    return {name: series for name, series in readings.items() if name not in gauges}
