"""Which passwords may be chosen (A-93)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.idp.passwords import UnusablePassword, check_password, normalized_password

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=1100)


@pytest.mark.parametrize(
    "password",
    [
        "password123",
        "secret123",
        "mypassword",
        "a" * 8,
        "a" * 1024,
        " " * 8,
        "correct horse",
        "🐎" * 8,
    ],
)
def test_length_is_the_only_rule(password: str) -> None:
    """A-93: what existing clients and tests use is good enough."""
    assert check_password(password) == password


@pytest.mark.parametrize(
    ("password", "known_text"),
    [
        (None, "Password required"),
        (12345678, "Password required"),
        (["password123"], "Password required"),
        ("", "Password required"),
        ("1234567", "Password must be at least 8 characters"),
        ("a" * 1025, "Password must be at most 1024 characters"),
        # Seven characters, however many code points they were typed with.
        ("e\u0301" * 7, "Password must be at least 8 characters"),
        ("\ud800" * 8, "Invalid password"),
    ],
)
def test_others_are_refused_in_known_words(password: object, known_text: str) -> None:
    """A-90"""
    with pytest.raises(UnusablePassword) as refusal:
        check_password(password)
    assert refusal.value.known_text == known_text


@given(_TEXT)
def test_what_may_be_chosen_can_be_presented_however_it_is_typed(password: str) -> None:
    """A-93: the same text in another Unicode form is the same password."""
    try:
        chosen = check_password(password)
    except UnusablePassword:
        return
    for form in ("NFC", "NFD"):
        assert normalized_password(unicodedata.normalize(form, password)) == chosen


@pytest.mark.parametrize("password", ["a" * 1025, "\ud800" * 8])
def test_a_password_that_no_account_can_have_is_not_compared(password: str) -> None:
    assert normalized_password(password) is None
