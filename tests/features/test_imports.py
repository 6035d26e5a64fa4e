"""What the modules of each feature may import: the contracts in pyproject.toml name no feature."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph

import podstead

SOURCES = Path(podstead.__file__).parent
CONTRACTS = Path(__file__).parents[2] / "pyproject.toml"
EVERYWHERE = {"click", "markupsafe", "msgspec"}
"""Libraries that all modules may use."""
MARK = re.compile(r"\bPure[.:]")
"""In the docstring of a module that does no I/O, reads no clock and draws no random numbers."""


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return build_graph("podstead", include_external_packages=True, cache_dir=None)


def test_each_library_of_features_has_one_place(graph: ImportGraph) -> None:
    """One module of one feature, or one of each feature if the rest of the server uses the library:
    then a contract says where."""
    libraries = {each for each in graph.modules if each.partition(".")[0] != "podstead"}
    for library in libraries - EVERYWHERE - sys.stdlib_module_names:
        users = graph.find_modules_that_directly_import(library)
        of_features = [each for each in users if each.startswith("podstead.features.")]
        if len(of_features) == len(users):
            assert len(users) <= 1, (library, users)
        features = [each.split(".")[2] for each in of_features]
        assert len(features) == len(set(features)), (library, users)


def test_pure_modules_of_features_are_pure(graph: ImportGraph) -> None:
    contracts = tomllib.loads(CONTRACTS.read_text())["tool"]["importlinter"]["contracts"]
    (pure,) = (each for each in contracts if each["id"] == "pure")
    effects = {each for each in pure["forbidden_modules"] if each in graph.modules}
    marked = [
        path
        for path in (SOURCES / "features").rglob("*.py")
        if MARK.search(ast.get_docstring(ast.parse(path.read_text())) or "")
    ]
    for path in marked:
        name = ".".join(("podstead", *path.relative_to(SOURCES).with_suffix("").parts))
        for effect in effects:
            chain = graph.find_shortest_chain(importer=name, imported=effect)
            assert chain is None, chain
