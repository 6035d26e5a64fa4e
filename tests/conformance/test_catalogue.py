"""Each requirement has its tests or a reason for having none, and each test a requirement."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conformance.catalogue import Section, conformance_tests, sections

NUMBERS = {
    "1-http": {"P": {*range(1, 55)}, "S": {*range(1, 12)}, "F": {*range(1, 11)}},
    "2-containers": {"C": {*range(1, 31)}},
    "3-rdf": {"R": {*range(1, 17)}},
    "4-patch": {"X": {*range(1, 18), *range(20, 27), *range(30, 39)}},
    "5-access-control": {
        "W": {*range(1, 19), *range(30, 46), *range(50, 57), *range(60, 65)},
        "M": {*range(1, 5)},
    },
}
"""All there are: P to W number the rules; S, F and M number the tables."""

SECTIONS = sections()
TESTS = conformance_tests()


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
    tested = {test.requirement for test in TESTS}
    wrong = [
        requirement.id
        for requirement in section.requirements
        if (requirement.id in tested) == bool(requirement.not_tested)
    ]
    assert wrong == []


def test_every_test_names_a_requirement() -> None:
    known = {requirement.id for section in SECTIONS for requirement in section.requirements}
    assert [test.name for test in TESTS if test.requirement not in known] == []


def test_no_two_tests_have_one_name() -> None:
    counts = Counter((test.file, test.name) for test in TESTS)
    assert [test for test, count in counts.items() if count > 1] == []
