"""Each requirement has its tests or a reason for having none, and each test a requirement."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from tests.conformance.catalogue import (
    CatalogueError,
    ConformanceTest,
    Section,
    cited_ids,
    cited_sources,
    citing_tests,
    conformance_tests,
    sections,
    sources,
)
from tests.support.own_files import own_files

NUMBERS = {
    "1-http": {"P": {*range(1, 55)}, "S": {*range(1, 12)}, "F": {*range(1, 11)}},
    "2-containers": {"C": {*range(1, 31)}},
    "3-rdf": {"R": {*range(1, 17)}},
    "4-patch": {"X": {*range(1, 18), *range(20, 27), *range(30, 39)}},
    "5-access-control": {
        "W": {*range(1, 19), *range(30, 46), *range(50, 57), *range(60, 65)},
        "M": {*range(1, 5)},
    },
    "6-notifications": {"N": {*range(1, 27), *range(30, 33)}},
    "7-live-updates": {"L": {*range(1, 13)}},
    "8-authentication": {
        "A": {
            *range(1, 10), *range(11, 14), 15, *range(30, 35), *range(100, 115), *range(140, 153),
            *range(160, 173), *range(180, 193),
        }
    },
    "9-identity-provider": {
        "A": {
            *range(40, 69), *range(70, 73), *range(74, 77), *range(80, 85), 86,
            *range(90, 99), *range(115, 132),
        }
    },
}  # fmt: skip
"""All there are: P to W, N, L and A number the rules; S, F and M number the tables."""

SECTIONS = sections()
TESTS = conformance_tests()
citing_tests_once = lru_cache(citing_tests)
KNOWN = {requirement.id for section in SECTIONS for requirement in section.requirements}

ROOT = Path(__file__).resolve().parents[2]
CITING_FILES = (
    ("src", "py"), ("src", "sql"), ("src", "html"), ("tests", "py"), ("tests", "mjs"),
    ("scripts", "py"), ("docs", "md"),
)  # fmt: skip
"""Where requirements and specifications are cited: folders, and endings of files."""
NO_CITATIONS = {"P-256", "P-384", "P-521", "P-999"}
"""Elliptic curves, and what the tests invent as one."""
SECTION = re.compile(r",? sections? [0-9A-Z]\b(?=[., );:])")
BEFORE_SECTION = 40
WEAKNESSES = ROOT / "tests/weaknesses/weaknesses.toml"
UNREADABLE = re.compile(
    r"\b[Ii]ssue [0-9]+|\([Ii]ssue: |\"\"\"Issue[:,;]|\b[Pp]ipeline of [0-9]|\bauth-[A-Z]-[0-9]"
)
"""Numbers of tasks, parts of plans, and lists that are not in the repository."""


def test_every_section_is_there() -> None:
    assert [section.name for section in SECTIONS] == [*NUMBERS]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_every_requirement_is_listed_in_its_order(section: Section) -> None:
    expected = [
        f"{letter}-{number}"
        for letter, numbers in NUMBERS[section.name].items()
        for number in sorted(numbers)
    ]
    assert [requirement.id for requirement in section.requirements] == expected


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_every_requirement_is_either_tested_or_says_why_not(section: Section) -> None:
    tests = citing_tests_once() if section.shown_anywhere else TESTS
    tested = {test.requirement for test in tests}
    wrong = [
        requirement.id
        for requirement in section.requirements
        if (requirement.id in tested) == bool(requirement.not_tested)
    ]
    assert wrong == []


def test_every_test_names_a_requirement() -> None:
    assert [test.name for test in TESTS if test.requirement not in KNOWN] == []


def test_every_source_is_one_that_the_page_links_to() -> None:
    named = [
        (requirement.id, source)
        for section in SECTIONS
        for requirement in section.requirements
        for source in cited_sources(requirement)
    ]
    beginnings = tuple(f"{name}{end}" for name in sources() for end in (" ", ", "))
    unknown = [
        (id_, source)
        for id_, source in named
        if source not in sources() and not source.startswith(beginnings)
    ]
    assert unknown == []


def test_whatever_is_cited_is_defined() -> None:
    """In code, tests and documentation, wherever in them."""
    unknown = {
        str(path): missing
        for path in citing_files()
        if (missing := sorted(set(cited_ids((ROOT / path).read_text("utf-8"))) - defined_for(path)))
    }
    assert unknown == {}


def test_every_section_that_is_cited_is_of_a_source_that_the_page_links_to() -> None:
    known = tuple(sources())
    unknown = {
        str(path): wrong
        for path in citing_files()
        if (wrong := [text for text in cited_sections(path) if not is_of(text, known)])
    }
    assert unknown == {}


def cited_sections(path: Path) -> Iterator[str]:
    """What stands before each "section", unless another one stands there."""
    text = re.sub(r"\s+(?:#:? )?", " ", (ROOT / path).read_text("utf-8"))
    free_from = 0
    for match in SECTION.finditer(text):
        begin = match.start() - BEFORE_SECTION
        if begin >= free_from:
            yield text[begin : match.start()]
            free_from = match.end()


def is_of(text: str, names: tuple[str, ...]) -> bool:
    """Whether it ends in one of the names, be it with the number of a version or an RFC."""
    return text.endswith(names) or re.sub(r" [0-9][0-9.]*$", "", text).endswith(names)


def test_nothing_cites_what_only_its_authors_can_read() -> None:
    """The number of a task or the part of a plan says nothing to whoever has the repository."""
    unreadable = {
        str(path): found
        for path in citing_files()
        if (found := UNREADABLE.findall((ROOT / path).read_text("utf-8")))
    }
    assert unreadable == {}


def citing_files() -> Iterator[Path]:
    """All but this one, which has examples."""
    for folder, ending in CITING_FILES:
        for path in own_files(ROOT / folder, f"*.{ending}"):
            if "node_modules" not in path.parts and path != Path(__file__).resolve():
                yield path.relative_to(ROOT)


def defined_for(path: Path) -> set[str]:
    """What may be cited in a file. The tests of weaknesses have a list of those as well."""
    if path.parent.name == "weaknesses":
        return KNOWN | NO_CITATIONS | tomllib.loads(WEAKNESSES.read_text("utf-8")).keys()
    return KNOWN | NO_CITATIONS


def test_no_two_tests_have_one_name() -> None:
    counts = Counter((test.file, test.name) for test in TESTS)
    assert [test for test, count in counts.items() if count > 1] == []


# --- The catalogue itself ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "requirement", "is_open"),
    [
        ("def test_p_3_it_holds(): ...", "P-3", False),
        ("async def test_w_64_it_holds(): ...", "W-64", False),
        ("@pytest.mark.parametrize('a', [1])\ndef test_p_3_it_holds(a): ...", "P-3", False),
        ("@pytest.mark.xfail\ndef test_p_3_fails(): ...", "P-3", True),
        ("@pytest.mark.skipif(True, reason='')\ndef test_p_3_no(): ...", "P-3", True),
        ("def test_p_3_no():\n    pytest.skip('no')", "P-3", True),
        ("pytestmark = pytest.mark.skip\ndef test_p_3_no(): ...", "P-3", True),
        (
            (
                "@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.xfail)])\n"
                "def test_p_3_partly(a): ..."
            ),
            "P-3",
            True,
        ),
        (
            (
                "CASES: list = [pytest.param(1, marks=pytest.mark.xfail)]\n"
                "@pytest.mark.parametrize('a', CASES)\n"
                "def test_p_3_partly(a): ..."
            ),
            "P-3",
            True,
        ),
        ("def test_it_holds(): ...", None, False),
        ("def test_p3_it_holds(): ...", None, False),
    ],
)
def test_a_test_is_found_with_its_requirement_and_whether_it_may_fail(
    tmp_path: Path, source: str, requirement: str | None, *, is_open: bool
) -> None:
    (tmp_path / "test_x.py").write_text(f"import pytest\n{source}\ndef helper(): ...\n")
    [test] = conformance_tests(tmp_path)
    assert test == ConformanceTest("test_x.py", test.name, requirement, is_open)


@pytest.mark.parametrize(
    "entry",
    [
        "[P-1]\nlevel = 'M'",
        "[P-1]\nstatement = 'It holds.'",
        "[P-1]\nlevel = 'X'\nstatement = 'It holds.'",
        "[P-1]\nlevel = 'M'\nstatement = 'It | holds.'",
        "[P-1]\nlevel = 'M'\nstatement = 'It holds.'\nreason = 'none'",
        "[P-01]\nlevel = 'M'\nstatement = 'It holds.'",
        "[Q]\nlevel = 'M'\nstatement = 'It holds.'",
    ],
)
def test_a_requirement_that_is_not_written_as_it_should_be_is_refused(
    tmp_path: Path, entry: str
) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/1-x.toml").write_text(f"title = 'X'\n{entry}\n")
    with pytest.raises(CatalogueError):
        sections(tmp_path)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Who asks? (A-1, RFC 9110 section 11)", ["A-1"]),
        ("A-62 to A-64, P-3: refused", ["A-62", "A-63", "A-64", "P-3"]),
        ("UTF-8, SHA-256, NIP-98, ES-256, X-Forwarded-For, RFC-7 and A-01", []),
    ],
)
def test_requirements_are_found_where_prose_cites_them(text: str, ids: list[str]) -> None:
    assert list(cited_ids(text)) == ids


def test_a_test_outside_the_suite_shows_what_its_docstring_cites(tmp_path: Path) -> None:
    (tmp_path / "http").mkdir()
    (tmp_path / "http/test_x.py").write_text(
        '"""All of it (A-9)."""\n\ndef test_it():\n    """A-1, A-2: it holds."""\n    # A-3\n'
    )
    assert citing_tests(tmp_path) == [
        ConformanceTest("http/test_x.py", "test_it", requirement, is_open=False)
        for requirement in ("A-1", "A-2")
    ]
