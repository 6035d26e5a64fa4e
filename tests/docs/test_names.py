"""Does each public name of a module mean one thing in the whole source tree?"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import podstead

_SOURCE = Path(podstead.__file__).parent
_DEFINITION = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_SAME_MEANING = {"verify"}
"""Names that stand in several modules for the same thing: both verify a Schnorr signature."""


def _place(path: Path) -> str:
    """Where a module is; the modules of the storage engines do the same with the same names."""
    place = path.relative_to(_SOURCE)
    engines = {("storage", "sqlite"), ("storage", "postgresql")}
    return "a storage engine" if place.parts[:2] in engines else str(place)


def test_no_two_modules_define_a_public_class_or_function_of_one_name() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(_SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, _DEFINITION) and not node.name.startswith("_"):
                modules[node.name].append(_place(path))
    several = {name: paths for name, paths in modules.items() if len(set(paths)) > 1}
    assert set(several) <= _SAME_MEANING, several
