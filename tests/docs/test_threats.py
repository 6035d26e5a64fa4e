"""Does each row of the threat model name a test that exists?"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.support.features import LEFT_OUT

_REPOSITORY = Path(__file__).resolve().parents[2]
_PAGE = _REPOSITORY / "docs/evidence/threats.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_HEADINGS = ("who", "---")
WEAKNESSES = 30
"""How many are listed in tests/weaknesses/weaknesses.toml."""


def _rows() -> list[list[str]]:
    lines = _PAGE.read_text(encoding="utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    return [row for row in rows if row[0] not in _HEADINGS]


@cache
def _tests_in(path: str) -> frozenset[str]:
    tree = ast.parse((_REPOSITORY / path).read_text(encoding="utf-8"))
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def test_each_weakness_found_in_other_servers_is_a_threat_here() -> None:
    """Every test of tests/weaknesses is named, so every protection that it shows has a row."""
    named = {name for row in _rows() for _, name in _TEST.findall(row[3])}
    files = (_REPOSITORY / "tests/weaknesses").glob("test_*.py")
    tests = {
        name
        for path in files
        for name in _tests_in(str(path.relative_to(_REPOSITORY)))
        if name.startswith("test_w_")
    }
    assert len({name.split("_")[2] for name in tests}) == WEAKNESSES
    assert tests <= named, sorted(tests - named)


def test_each_section_has_rows_and_the_accepted_risks_are_listed() -> None:
    text = _PAGE.read_text(encoding="utf-8")
    *sections, accepted = re.split(r"(?m)^## ", text)[1:]
    for section in sections:
        assert section.count("\n| ") > len(_HEADINGS), section.partition("\n")[0]
    assert accepted.startswith("Accepted risks")
    assert "\n- **" in accepted


def test_each_threat_names_the_tests_that_show_its_protection() -> None:
    for row in _rows():
        assert len(row) == 4, row
        named = _TEST.findall(row[3])
        assert named, f"{row[1]}: no test is named"
        for path, name in named:
            if not LEFT_OUT.isdisjoint(path.split("/")):
                continue
            assert name in _tests_in(path), f"{path} has no test {name}"
