"""Which requirements does the server meet, and which tests show it?

The requirements are in ``requirements/*.toml``, one file for each section of the page, and what
they cite is in ``sources.toml``. A conformance test names the one requirement that it shows:
``test_p_3_a_401_has_a_challenge`` shows P-3. In a section with ``shown_anywhere``, every test of
the suite shows the requirements that its docstring cites. Tests are found by reading their source,
so no test is run and nothing is imported.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.support.own_files import own_files

FOLDER = Path(__file__).resolve().parent
TESTS = FOLDER.parent
LEVELS = {
    "M": "must, by the specification",
    "S": "should, by the specification",
    "Y": "may, by the specification",
    "T": "only a public conformance test asks for it",
    "C": "only existing clients need it",
    "R": "our recommendation where the specifications are silent",
}

CITATION = re.compile(r"\b([A-Z])-([1-9][0-9]*)\b(?: to \1-([1-9][0-9]*)\b)?")
"""A requirement as prose cites it, ``A-62``, or several in a row, ``A-62 to A-68``."""
_TEST_NAME = re.compile(r"test_([a-z])_([0-9]+)_\w+")
_NO_CONFORMANCE_TESTS = {"test_catalogue.py"}
_NO_CITING_TESTS = {"conformance", "weaknesses"}
"""Folders whose tests have lists of their own."""
_OPEN = {"skip", "skipif", "xfail", "importorskip"}

TestNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on the server."""

    id: str
    """A letter, a hyphen and a number: ``P-3``."""
    levels: tuple[str, ...]
    """Keys of ``LEVELS``; the first says most."""
    statement: str
    """What is required, in one sentence."""
    source: str
    """Names of ``sources.toml`` with sections, by semicolons; empty where the level says it all."""
    not_tested: str
    """Why no test here shows it; empty if one does."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the protocol."""

    name: str
    """The name of its file, without its ending."""
    title: str
    shown_anywhere: bool
    """Whether tests outside this folder show its requirements, by citing them."""
    requirements: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class ConformanceTest:
    """One test function."""

    file: str
    """Its path in the folder that was searched."""
    name: str
    requirement: str | None
    """The ID that it shows; ``None`` if there is none."""
    is_open: bool
    """Whether it, or a case of it, is expected to fail or may be skipped."""


class CatalogueError(ValueError):
    """A requirement is not written as it should be."""


def sections(folder: Path = FOLDER) -> list[Section]:
    """All sections in their order. Raises CatalogueError."""
    return [_section(path) for path in sorted((folder / "requirements").glob("*.toml"))]


def conformance_tests(folder: Path = FOLDER) -> list[ConformanceTest]:
    """All tests, by file and then as they stand in it."""
    return [
        ConformanceTest(path.name, node.name, _named(node), is_open)
        for path in sorted(folder.glob("test_*.py"))
        if path.name not in _NO_CONFORMANCE_TESTS
        for node, is_open in _tests_in(path)
    ]


def citing_tests(folder: Path = TESTS) -> list[ConformanceTest]:
    """All tests outside the conformance suite that cite requirements, once for each requirement."""
    return [
        ConformanceTest(path.relative_to(folder).as_posix(), node.name, cited, is_open)
        for path in own_files(folder, "test_*.py")
        if path.parent.name not in _NO_CITING_TESTS and any(cited_ids(path.read_text("utf-8")))
        for node, is_open in _tests_in(path)
        for cited in sorted(set(cited_ids(ast.get_docstring(node) or "")))
    ]


def cited_ids(text: str) -> Iterator[str]:
    """The IDs that a text cites, in their order; a range is all that it spans."""
    for match in CITATION.finditer(text):
        first = int(match[2])
        for number in range(first, int(match[3] or first) + 1):
            yield f"{match[1]}-{number}"


def sources(folder: Path = FOLDER) -> dict[str, str]:
    """The addresses of what is cited, by name."""
    return tomllib.loads((folder / "sources.toml").read_text(encoding="utf-8"))


def cited_sources(requirement: Requirement) -> list[str]:
    """What a requirement's source cites: each a name, and sections after it."""
    return requirement.source.split("; ") if requirement.source else []


def _section(path: Path) -> Section:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    title = content.pop("title")
    shown_anywhere = content.pop("shown_anywhere", False)
    requirements = tuple(_requirement(id_, entry) for id_, entry in content.items())
    return Section(path.stem, title, shown_anywhere, requirements)


def _requirement(id_: str, entry: dict[str, str]) -> Requirement:
    levels = tuple(entry.get("level", "").split("/"))
    if (
        not re.fullmatch(r"[A-Z]-[1-9][0-9]*", id_)
        or not entry.keys() >= {"level", "statement"}
        or not entry.keys() <= {"level", "statement", "source", "not_tested"}
        or not set(levels) <= set(LEVELS)
    ):
        raise CatalogueError(f"{id_}: {entry}")
    if any("|" in text or "\n" in text for text in entry.values()):
        raise CatalogueError(f"{id_} does not fit into a row of a table")
    return Requirement(
        id_, levels, entry["statement"], entry.get("source", ""), entry.get("not_tested", "")
    )


def _tests_in(path: Path) -> Iterator[tuple[TestNode, bool]]:
    """Each test function, and whether it is open."""
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    may_be_open = any(word in text for word in _OPEN)
    module_is_open = may_be_open and any(
        _is_open(statement)
        for statement in module.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
    )
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            yield node, module_is_open or (may_be_open and _is_open(node))


def _named(node: TestNode) -> str | None:
    match = _TEST_NAME.fullmatch(node.name)
    return f"{match[1].upper()}-{match[2]}" if match else None


def _is_open(node: ast.AST) -> bool:
    """Whether a skip or an expected failure is written anywhere in it."""
    return any(
        isinstance(part, ast.Attribute) and part.attr in _OPEN and _is_of_pytest(part)
        for part in ast.walk(node)
    )


def _is_of_pytest(attribute: ast.Attribute) -> bool:
    base: ast.expr = attribute
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and base.id == "pytest"
