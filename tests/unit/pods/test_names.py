"""May a pod have this name? (A-90, A-91)"""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.identifiers import parse_path
from podstead.pods.names import MAX_NAME_CHARACTERS, RESERVED_NAMES, UnusablePodName, check_name

ALLOWED = string.ascii_letters + string.digits + "-_"


@given(st.text(ALLOWED, min_size=1, max_size=MAX_NAME_CHARACTERS))
def test_an_allowed_name_is_a_path_segment_as_it_is(name: str) -> None:
    if name.lower() in RESERVED_NAMES:
        return
    assert check_name(name) == name
    assert parse_path(f"/{name}/".encode()) == f"/{name}/"


@given(st.text(max_size=80) | st.none() | st.integers() | st.lists(st.text()) | st.booleans())
def test_every_other_name_is_refused(name: object) -> None:
    allowed = (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME_CHARACTERS
        and set(name) <= set(ALLOWED)
        and name.lower() not in RESERVED_NAMES
    )
    if allowed:
        assert check_name(name) == name
    else:
        with pytest.raises(UnusablePodName):
            check_name(name)


@pytest.mark.parametrize("length", [MAX_NAME_CHARACTERS, MAX_NAME_CHARACTERS + 1])
def test_a_name_has_so_many_characters(length: int) -> None:
    name = "x" * length
    if length <= MAX_NAME_CHARACTERS:
        assert check_name(name) == name
    else:
        with pytest.raises(UnusablePodName):
            check_name(name)
