"""Does decision 0005 show what the command that it names measures?"""

from __future__ import annotations

import subprocess
import sys

from tests.support.processes import REPOSITORY

_DECISION = REPOSITORY / "docs/evidence/decisions/0005-response-cache.md"


def test_the_table_of_caches_has_the_rows_and_columns_that_are_measured() -> None:
    # In a process of its own: it looks at all objects, of which this one has millions.
    command = [sys.executable, "-m", "bench.caches", "--requests", "1", "--rounds", "1"]
    measuring = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    measured = _table(measuring.stdout)
    shown = _table(_DECISION.read_text(encoding="utf-8"))
    assert [row[0] for row in shown] == [row[0] for row in measured]
    assert {len(row) for row in shown} == {len(row) for row in measured}
    assert measured[0][2:] == shown[0][2:]


def _table(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
