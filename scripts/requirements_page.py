"""The page that leads from each requirement to its tests, made from both."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.conformance.catalogue import (
    LEVELS,
    ConformanceTest,
    Requirement,
    Section,
    citing_tests,
    conformance_tests,
    sections,
    sources,
)

_INTRODUCTION = """\
# Requirements

<!-- Written by `make docs` from tests/conformance. -->

What the Solid specifications, public conformance tests and existing clients ask of the server, and
the tests that show that it holds. Every change to the server runs them, so what is marked as
holding holds. [Sources](#sources) links to what the requirements cite.

The tests of the protocol run over a socket against a `podstead start` of their own, and alone with
`make test ARGS=tests/conformance`. Each is named for its requirement: `test_p_3_…` shows P-3. The
requirements on authentication and on the identity provider are shown by tests of every level, each
of which cites them. The levels:

"""
_TEST_FOLDER = "../../tests"


def requirements_page() -> str:
    """The page ``docs/evidence/requirements.md``."""
    named, citing = _by_requirement(conformance_tests()), _by_requirement(citing_tests())
    levels = "".join(f"- {level}: {meaning}\n" for level, meaning in LEVELS.items())
    parts = (
        _section(section, citing if section.shown_anywhere else named) for section in sections()
    )
    return _INTRODUCTION + levels + "".join(parts) + _sources()


def _by_requirement(tests: list[ConformanceTest]) -> Mapping[str | None, list[ConformanceTest]]:
    found: dict[str | None, list[ConformanceTest]] = defaultdict(list)
    for test in tests:
        found[test.requirement].append(test)
    return found


def _sources() -> str:
    rows = (f"- {name}: <{url}>\n" for name, url in sources().items() if "://" in url)
    local = (f"- [{name}]({url})\n" for name, url in sources().items() if "://" not in url)
    return "\n## Sources\n\n" + "".join(rows) + "".join(local)


def _section(section: Section, by_requirement: Mapping[str | None, list[ConformanceTest]]) -> str:
    folder = _TEST_FOLDER if section.shown_anywhere else f"{_TEST_FOLDER}/conformance"
    rows = (_row(entry, by_requirement.get(entry.id, []), folder) for entry in section.requirements)
    header = "| ID | level | requirement | tests | status |\n| --- | --- | --- | --- | --- |\n"
    return f"\n## {section.title}\n\n{header}" + "".join(rows)


def _row(requirement: Requirement, shown_by: list[ConformanceTest], folder: str) -> str:
    statement = requirement.statement
    if requirement.source:
        statement += f" ({requirement.source})"
    cells = (
        requirement.id,
        ", ".join(requirement.levels),
        statement,
        "<br>".join(_links(shown_by, folder)),
        _status(requirement, shown_by),
    )
    return f"| {' | '.join(cells)} |\n"


def _links(shown_by: list[ConformanceTest], folder: str) -> Iterator[str]:
    for test in shown_by:
        yield f"[{test.name}]({folder}/{test.file}#{test.name})"


def _status(requirement: Requirement, shown_by: list[ConformanceTest]) -> str:
    if requirement.not_tested:
        return f"not tested: {requirement.not_tested}"
    return "open" if any(test.is_open for test in shown_by) else "holds"
