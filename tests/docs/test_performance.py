"""Does the page on performance name modules and tests that exist, and the recorded counts?"""

from __future__ import annotations

import json
import re
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[2]
_TEXT = (_REPOSITORY / "docs/evidence/performance.md").read_text(encoding="utf-8")


def test_each_module_and_test_that_is_named_exists() -> None:
    names = re.findall(r"`([\w/]+\.py)`", _TEXT)
    assert len(names) > 20
    for name in names:
        found = [_REPOSITORY / root / name for root in ("", "src/podstead")]
        assert any(path.is_file() for path in found), name


def test_each_shortcut_has_a_test() -> None:
    table = _TEXT.partition("| shortcut |")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    assert len(rows) > 10
    assert all("`tests/" in row for row in rows)


def test_the_counts_are_those_recorded() -> None:
    recorded = json.loads((_REPOSITORY / "bench/counts.json").read_text(encoding="utf-8"))["counts"]
    rows = re.findall(r"^\| .*\(`([a-z0-9-]+)`\) \| [\d,]+ \| ([\d,]+) \|$", _TEXT, re.MULTILINE)
    stated = {key: int(thousands.replace(",", "")) for key, thousands in rows}
    assert stated == {key: round(count["instructions"] / 1000) for key, count in recorded.items()}
