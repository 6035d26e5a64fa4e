"""What Prefer headers request (RFC 7240, LDP 1.0 section 7.2)."""

from __future__ import annotations

import pytest

from podstead.core.header_fields import (
    MAX_PREFER_CHARS,
    NO_PREFERENCES,
    Preferences,
    Return,
    parse_prefer,
)

LDP = "http://www.w3.org/ns/ldp#"
MINIMAL = f"{LDP}PreferMinimalContainer"
EMPTY = f"{LDP}PreferEmptyContainer"
CONTAINMENT = f"{LDP}PreferContainment"
MEMBERSHIP = f"{LDP}PreferMembership"


def representation(include: tuple[str, ...] = (), omit: tuple[str, ...] = ()) -> Preferences:
    return Preferences(Return.REPRESENTATION, frozenset(include), frozenset(omit))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        # RFC 7240, sections 2 and 4: its own examples of what is known here.
        ("return=minimal", Preferences(Return.MINIMAL)),
        ("return=representation", representation()),
        ("respond-async, wait=100, handling=lenient, return=minimal", Preferences(Return.MINIMAL)),
        ("handling=strict", NO_PREFERENCES),
        ('foo; bar=""', NO_PREFERENCES),
        # LDP 1.0, section 7.2.2 and its examples.
        (f'return=representation; include="{MINIMAL}"', representation((MINIMAL,))),
        (
            f'return=representation; include="{MEMBERSHIP} {MINIMAL}"',
            representation((MEMBERSHIP, MINIMAL)),
        ),
        (
            f'return=representation; omit="{MEMBERSHIP} {CONTAINMENT}"',
            representation((), (MEMBERSHIP, CONTAINMENT)),
        ),
        (
            f'return=representation; include="{MINIMAL}"; omit="{CONTAINMENT}"',
            representation((MINIMAL,), (CONTAINMENT,)),
        ),
    ],
)
def test_headers_as_the_specifications_write_them(header: str, expected: Preferences) -> None:
    assert parse_prefer(header) == expected


@pytest.mark.parametrize(
    "header",
    [
        'RETURN=Representation;INCLUDE="%s"',
        ' return = representation ; include = "%s" ',
        'return="representation";include="%s"',
        ',, ,return=representation; include="  %s  ",',
        'return=representation;; include="%s";',
        'handling=lenient, return=representation; wait; include="%s"; include="x"',
        'foo; note="a, return=minimal, b", return=representation; include="%s"',
        'return=representation; include="x:y %s http://example.org/other"',
        '"broken", =x, a b, return=representation; include="%s"',
        'return=representation; include="%s", return=representation; include="x"',
        'foo; return=minimal, return=representation; include="%s"',
    ],
)
def test_spelling_order_and_what_is_not_known_make_no_difference(header: str) -> None:
    assert parse_prefer(header % MINIMAL) == representation((MINIMAL,))


def test_of_a_repeated_preference_the_first_applies() -> None:
    """RFC 7240 section 2: also where the second stands in a field of its own."""
    header = (
        f'return=representation; include="{MINIMAL}", return=representation; omit="{MEMBERSHIP}"'
    )
    assert parse_prefer(header) == representation((MINIMAL,))


@pytest.mark.parametrize("order", [("minimal", "representation"), ("representation", "minimal")])
def test_who_wants_both_wants_nothing_in_particular(order: tuple[str, str]) -> None:
    """RFC 7240 section 4.2."""
    assert parse_prefer(f"return={order[0]}, return={order[1]}") == NO_PREFERENCES


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "return",
        "return=",
        'return=""',
        "return=everything",
        "return representation",
        f"return=representation include={MINIMAL}",
        f"return=representation; include={MINIMAL}",
        f'return=representation; include="{MINIMAL}',
        f'return=representation; include="{MINIMAL}" x',
        f'return=representation; include="{MINIMAL}"; =x',
        ";return=representation",
        "return=representation" + " " * MAX_PREFER_CHARS,
    ],
)
def test_malformed_unknown_and_overlong_preferences_are_ignored(header: str | None) -> None:
    assert parse_prefer(header) == NO_PREFERENCES


def test_the_longest_accepted_header_is_parsed() -> None:
    header = "return=minimal"
    assert parse_prefer(header.ljust(MAX_PREFER_CHARS)) == Preferences(Return.MINIMAL)


@pytest.mark.parametrize(
    ("include", "omit", "without_members", "choose_parts"),
    [
        ((), (), False, False),
        ((MINIMAL,), (), True, True),
        ((EMPTY,), (), True, True),
        ((CONTAINMENT,), (), False, True),
        ((MINIMAL, CONTAINMENT), (), False, True),
        ((MEMBERSHIP,), (), True, True),
        ((MEMBERSHIP, CONTAINMENT), (), False, True),
        ((), (CONTAINMENT,), True, True),
        ((), (MEMBERSHIP, CONTAINMENT), True, True),
        ((), (MEMBERSHIP,), False, True),  # there is none, so it is left out
        ((), (MINIMAL,), False, False),  # it is always given
        ((), (MINIMAL, CONTAINMENT), True, True),
        ((MINIMAL,), (CONTAINMENT,), True, True),
        ((CONTAINMENT,), (MEMBERSHIP,), False, True),
        ((CONTAINMENT,), (CONTAINMENT,), False, False),
        ((MINIMAL,), (MINIMAL,), False, False),
    ],
)
def test_the_parts_of_a_basic_container(
    include: tuple[str, ...], omit: tuple[str, ...], without_members: bool, choose_parts: bool
) -> None:
    """LDP 1.0 section 7.2: it has no membership beside its containment."""
    preferences = representation(include, omit)
    assert (preferences.without_members, preferences.choose_parts) == (
        without_members,
        choose_parts,
    )
