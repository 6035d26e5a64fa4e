"""Has each weakness of the list a test, and each test a weakness?"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
_NAME = re.compile(r"test_w_([0-9]+)_\w+")


def test_each_weakness_has_a_test_or_waits_for_what_is_not_there_yet() -> None:
    listed = tomllib.loads((FOLDER / "weaknesses.toml").read_text(encoding="utf-8"))
    tested = {f"W-{number}" for number in _numbers()}
    waiting = {name for name, entry in listed.items() if "waits_for" in entry}
    assert list(listed) == [f"W-{number}" for number in range(1, 31)]
    assert tested | waiting == set(listed)
    assert not tested & waiting, "it has a test now: do not say any more that it waits"


def _numbers() -> set[str]:
    numbers = set()
    for path in FOLDER.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                match = _NAME.fullmatch(node.name)
                if match:
                    numbers.add(match[1])
    return numbers
