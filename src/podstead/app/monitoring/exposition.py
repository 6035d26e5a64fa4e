"""Writes metrics for Prometheus; the only module that knows its library."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from podstead.app.monitoring.families import FAMILIES, MetricFamily, MetricKind
from podstead.app.monitoring.readings import Reading, Readings

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class _Collected(Collector):
    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        for family in FAMILIES:
            series = self._readings.get(family.name)
            if series is not None:
                yield _metric(family, series)


def exposition(readings: Readings) -> bytes:
    """The text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(readings))
    return generate_latest(registry)


def _metric(family: MetricFamily, series: list[Reading]) -> Metric:
    name, meaning, labels = family.name, family.meaning, tuple(family.labels)
    if family.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, meaning, labels=labels)
        bounds = [*map(_bound_text, family.bounds), "+Inf"]
        for each in series:
            buckets = list(zip(bounds, accumulate(each.buckets), strict=True))
            histogram.add_metric(each.labels, buckets, each.value)
        return histogram
    metric = (
        CounterMetricFamily(name, meaning, labels=labels)
        if family.kind is MetricKind.COUNTER
        else GaugeMetricFamily(name, meaning, labels=labels)
    )
    for each in series:
        metric.add_metric(each.labels, each.value)
    return metric


def _bound_text(bound: float) -> str:
    return str(float(bound))
