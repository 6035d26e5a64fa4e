"""Sums of what workers count never fall, and are written so that Prometheus understands them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from podstead.app.monitoring import families
from podstead.app.monitoring.exposition import exposition
from podstead.app.monitoring.families import FAMILIES, MetricKind
from podstead.app.monitoring.readings import Reading, Readings, Total, added, single

_LINE = re.compile(
    r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
    r'(,[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*")*\})? [0-9.e+-]+'
)
"""A sample as the documentation of the text format describes it."""


def counted(value: float) -> Readings:
    return {
        **single(families.DELIVERED, value),
        **single(families.SOCKETS, value),
        families.BATCHES.name: [Reading((), value, (int(value), *[0] * 8))],
    }


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5), st.booleans()), max_size=30))
def test_counters_never_fall_whatever_workers_end(steps: list[tuple[int, int, bool]]) -> None:
    """Prometheus takes a counter that falls for one that began again at 0."""
    total = Total()
    running: dict[int, int] = {}
    before = 0.0
    in_all = 0
    for worker, more, ends in steps:
        running[worker] = running.get(worker, 0) + more
        in_all += more
        total.note(worker, counted(running[worker]))
        if ends:
            del running[worker]
        total.forget_all_but(running)
        readings = total.readings()
        (delivered,) = readings[families.DELIVERED.name]
        assert delivered.value == in_all >= before
        (sizes,) = readings[families.BATCHES.name]
        assert (sizes.value, sizes.buckets[0]) == (in_all, in_all)
        open_sockets = readings.get(families.SOCKETS.name, [])
        assert sum(each.value for each in open_sockets) == sum(running.values())
        before = delivered.value


def test_series_with_other_labels_are_not_added() -> None:
    one = {"x": [Reading(("a",), 1), Reading(("b",), 2)]}
    other = {"x": [Reading(("b",), 3)]}
    assert added([one, other]) == {"x": [Reading(("a",), 1), Reading(("b",), 5)]}


def test_all_metrics_are_written_as_the_format_says() -> None:
    readings: Readings = {}
    for family in FAMILIES:
        labels = tuple(f'a "{name}" \\ \n' for name in family.labels)
        buckets = (1, *[2] * len(family.bounds)) if family.bounds else ()
        readings[family.name] = [Reading(labels, 1.5, buckets)]
    text = exposition(readings).decode()
    for line in text.splitlines():
        assert line.startswith(("# HELP podstead_", "# TYPE podstead_")) or _LINE.fullmatch(line)
    parsed = {family.name: family for family in text_string_to_metric_families(text)}
    for family in FAMILIES:
        found = parsed[family.name.removesuffix("_total")]
        assert found.type == family.kind.value
        assert found.documentation == family.meaning
        if family.kind is MetricKind.HISTOGRAM:
            values = {sample.labels.get("le"): sample.value for sample in found.samples}
            bounds = [*map(str, map(float, family.bounds)), "+Inf"]
            counts = [values[bound] for bound in bounds]
            assert counts == sorted(counts)
            assert counts[-1] == 1 + 2 * len(family.bounds)


def test_names_follow_the_conventions() -> None:
    """Of Prometheus: base units, and _total for counters."""
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert family.name.endswith("_total") == (family.kind is MetricKind.COUNTER)
        assert not re.search(r"_(ms|milliseconds|kib|mib|percent)\b", family.name)
        assert (family.kind is MetricKind.HISTOGRAM) == bool(family.bounds)
        assert family.meaning.endswith(".")
