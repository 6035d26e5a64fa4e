"""The Grafana board and the page on monitoring name metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podstead.app.monitoring.families import FAMILIES, MetricKind

_REPOSITORY = Path(__file__).resolve().parents[2]
_BOARD: dict[str, Any] = json.loads((_REPOSITORY / "deploy/grafana/podstead.json").read_text())
_PAGE = (_REPOSITORY / "docs/operate/monitor.md").read_text(encoding="utf-8")
_OF_PROMETHEUS = {"le", "instance"}


def _series() -> dict[str, set[str]]:
    """The labels of each time series, by name."""
    found: dict[str, set[str]] = {}
    for family in FAMILIES:
        names = [family.name]
        if family.kind is MetricKind.HISTOGRAM:
            names = [f"{family.name}_{part}" for part in ("bucket", "sum", "count")]
        found.update({name: {*family.labels} for name in names})
    return found


def _expressions() -> list[str]:
    written = re.findall(r"^\| `(.*?)` \|", _PAGE, re.MULTILINE)
    return [*_of_board(), *(each for each in written if "podstead_" in each)]


def _of_board() -> Iterator[str]:
    for panel in _BOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("expression", _expressions())
def test_each_expression_names_metrics_and_labels_that_exist(expression: str) -> None:
    series = _series()
    used = re.findall(r"(podstead_\w+)(?:\{([^}]*)\})?", expression)
    assert used
    labels = set(re.findall(r"(\w+)\s*[=!]~?\s*\"", expression))
    for grouping in re.findall(r"by \(([^)]*)\)", expression):
        labels |= {label.strip() for label in grouping.split(",")}
    for name, _ in used:
        assert name in series
        assert labels <= series[name] | _OF_PROMETHEUS
    for legend in re.findall(r"\{\{(\w+)\}\}", expression):
        assert legend in labels
    assert expression.count("(") == expression.count(")")


def test_the_board_shows_every_metric() -> None:
    shown = " ".join(_of_board()) + json.dumps(_BOARD["templating"])
    missing = {
        family.name for family in FAMILIES if not re.search(rf"\b{family.name}(_|\b)", shown)
    }
    assert missing <= {
        "podstead_accounts",
        "podstead_audit_events_total",
        "podstead_disk_total_bytes",
    }


def test_panels_do_not_overlap() -> None:
    seen: set[tuple[int, int]] = set()
    for panel in _BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & seen
        assert place["x"] + place["w"] <= 24
        seen |= cells
    assert len({panel["id"] for panel in _BOARD["panels"]}) == len(_BOARD["panels"])
