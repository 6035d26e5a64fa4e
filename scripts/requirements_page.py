"""The page that leads from each requirement to its tests, made from both."""

from collections import defaultdict
from collections.abc import Iterator

from tests.conformance.catalogue import (
    LEVELS,
    ConformanceTest,
    Requirement,
    Section,
    conformance_tests,
    sections,
)

_INTRODUCTION = """\
# Requirements

<!-- Written by `make docs` from tests/conformance. -->

What the Solid specifications, public conformance tests and existing clients ask of the server, and
the tests that show that it holds. Each test runs over a socket against a `podstead start` of its
own; all of them, and nothing else, run with `make test ARGS=tests/conformance`. Every change to the
server runs them, so what is marked as holding holds.

A test is named for its requirement: `test_p_3_…` shows P-3. The levels:

"""
_TEST_FOLDER = "../../tests/conformance"


def requirements_page() -> str:
    """The page ``docs/reference/requirements.md``."""
    by_requirement: dict[str | None, list[ConformanceTest]] = defaultdict(list)
    for test in conformance_tests():
        by_requirement[test.requirement].append(test)
    levels = "".join(f"- {level}: {meaning}\n" for level, meaning in LEVELS.items())
    parts = (_section(section, by_requirement) for section in sections())
    return _INTRODUCTION + levels + "".join(parts)


def _section(section: Section, by_requirement: dict[str | None, list[ConformanceTest]]) -> str:
    rows = (_row(entry, by_requirement.get(entry.id, [])) for entry in section.requirements)
    header = "| ID | level | requirement | tests | status |\n| --- | --- | --- | --- | --- |\n"
    return f"\n## {section.title}\n\n{header}" + "".join(rows)


def _row(requirement: Requirement, shown_by: list[ConformanceTest]) -> str:
    statement = requirement.statement
    if requirement.source:
        statement += f" ({requirement.source})"
    cells = (
        requirement.id,
        ", ".join(requirement.levels),
        statement,
        "<br>".join(_links(shown_by)),
        _status(requirement, shown_by),
    )
    return f"| {' | '.join(cells)} |\n"


def _links(shown_by: list[ConformanceTest]) -> Iterator[str]:
    for test in shown_by:
        yield f"[{test.name}]({_TEST_FOLDER}/{test.file}#{test.name})"


def _status(requirement: Requirement, shown_by: list[ConformanceTest]) -> str:
    if requirement.not_tested:
        return f"not tested: {requirement.not_tested}"
    return "open" if any(test.is_open for test in shown_by) else "holds"
