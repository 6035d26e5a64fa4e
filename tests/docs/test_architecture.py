"""Does the page on the architecture show the tree as it is?"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

from tests.support.features import LEFT_OUT

_REPOSITORY = Path(__file__).resolve().parents[2]
_SOURCE = _REPOSITORY / "src/podstead"
_TEXT = (_REPOSITORY / "docs/explanation/architecture.md").read_text(encoding="utf-8")
_CELLS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in _TEXT.splitlines()
    if line.startswith("| ")
]
_PACKAGES = {cells[1].strip("`"): int(cells[0]) for cells in _CELLS if cells[0].isdecimal()}
"""The layer of each package."""
_WITHOUT_LAYER = {cells[1].strip("`") for cells in _CELLS if cells[0] == "\N{EN DASH}"}
_STEPS = [
    (cells[0].strip("`"), name)
    for cells in _CELLS
    if cells[0].endswith(".py`")
    for name in re.findall(r"`([\w.]+)`", cells[1])
]


def _layers() -> list[set[str]]:
    settings = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [
        each for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "layers"
    ]
    return [set(re.findall(r"\w+", layer)) for layer in contract["layers"]]


@cache
def _functions_of(path: str) -> frozenset[str]:
    """The functions of a file; those of a class with its name before theirs."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    names = set()
    for node in ast.parse((_SOURCE / path).read_text(encoding="utf-8")).body:
        if isinstance(node, functions):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}.{part.name}" for part in node.body if isinstance(part, functions)
            }
    return frozenset(names)


def test_each_package_has_a_row_and_each_row_is_a_package() -> None:
    packages = {
        path.name for path in _SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()
    }
    rows = {*_PACKAGES, *_WITHOUT_LAYER}
    assert {name for name in rows if "/" not in name} == packages
    for name in rows:
        is_left_out = not LEFT_OUT.isdisjoint(name.split("/"))
        assert is_left_out or (_SOURCE / name / "__init__.py").exists(), name


def test_the_layers_are_those_of_the_import_contract() -> None:
    layers: list[set[str]] = [set() for _ in range(max(_PACKAGES.values()))]
    for name, layer in _PACKAGES.items():
        layers[layer - 1].add(name.partition("/")[0])
    assert layers == _layers()


def test_the_picture_shows_each_package() -> None:
    (picture,) = re.findall(r"```mermaid\n(.*?)```", _TEXT, re.DOTALL)
    drawn = set(re.findall(r"^ +(\w+)(?:\[.*\])?$", picture, re.MULTILINE)) - {"end"}
    assert drawn == set.union(*_layers())


def test_each_function_of_a_walk_is_where_the_page_says() -> None:
    assert _STEPS
    assert {step for step in _STEPS if step[1] not in _functions_of(step[0])} == set()
