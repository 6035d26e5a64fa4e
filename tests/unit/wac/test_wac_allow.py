"""The header text of WAC-Allow, against its grammar and against what clients read out of it."""

from __future__ import annotations

import itertools
import re

import pytest

from podstead.wac.modes import Mode, Modes, wac_allow, with_entailed

# Web Access Control, section 6.1: access-param = permission-group OWS "=" OWS access-modes
_GRAMMAR = re.compile(r'user="([a-z]+( [a-z]+)*)?",public="([a-z]+( [a-z]+)*)?"')


def modes(*names: str) -> Modes:
    return with_entailed(map(Mode, names))


@pytest.mark.parametrize(
    ("user", "public", "header"),
    [
        ((), (), 'user="",public=""'),
        (("read",), (), 'user="read",public=""'),
        (("read",), ("read",), 'user="read",public="read"'),
        (("read", "control"), (), 'user="read control",public=""'),
        (("read", "append"), (), 'user="read append",public=""'),
        (("read", "write"), (), 'user="read write append",public=""'),
        (("read", "write", "append"), (), 'user="read write append",public=""'),
        (
            ("control", "write", "read"),
            ("append",),
            'user="read write append control",public="append"',
        ),
    ],
)
def test_both_groups_are_listed_in_one_fixed_order(
    user: tuple[str, ...], public: tuple[str, ...], header: str
) -> None:
    """W-51, W-53, W-54"""
    assert wac_allow(modes(*user), modes(*public)) == header


def test_every_combination_keeps_the_grammar() -> None:
    """W-51"""
    subsets = [
        frozenset(chosen)
        for size in range(len(Mode) + 1)
        for chosen in itertools.combinations(Mode, size)
    ]
    for user, public in itertools.product(subsets, subsets):
        header = wac_allow(user, public)
        assert _GRAMMAR.fullmatch(header), header
        groups = dict(part.split("=") for part in header.split(","))
        assert set(groups["user"].strip('"').split()) == {mode.value for mode in user}
        assert set(groups["public"].strip('"').split()) == {mode.value for mode in public}
