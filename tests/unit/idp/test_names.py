"""E-mail addresses and names to sign in with (A-92)."""

from __future__ import annotations

import pytest

from podstead.idp.records import (
    EMAILS,
    USERNAMES,
    UnusableEmail,
    check_email,
    login_records,
    masked_email,
    name_key,
)


@pytest.mark.parametrize(
    ("email", "kept"),
    [
        ("alice@example.org", "alice@example.org"),
        ("  Alice+pods@Example.ORG\t", "Alice+pods@Example.ORG"),
        ("a@b", "a@b"),
        ("ünï@bücher.example", "ünï@bücher.example"),
        ("a" * 242 + "@example.org", "a" * 242 + "@example.org"),
    ],
)
def test_an_address_is_kept_as_given_without_space_around_it(email: str, kept: str) -> None:
    assert check_email(email) == kept


@pytest.mark.parametrize("email", [None, "", "  ", 5, ["a@b"], {"a@b": 1}, True])
def test_an_address_must_be_there(email: object) -> None:
    """A-90"""
    with pytest.raises(UnusableEmail) as refusal:
        check_email(email)
    assert refusal.value.known_text == "Email required for account creation"


@pytest.mark.parametrize(
    "email",
    [
        "alice",
        "@example.org",
        "alice@",
        "a@b@c",
        "a b@c",
        "a@b\nc",
        "a@b\x00",
        "a@b\u200b",
        "a@\u2028b",
        "a" * 243 + "@example.org",
    ],
)
def test_a_malformed_address_is_refused(email: str) -> None:
    """A-92: at most 254 characters, one ``@``, no space and no control character."""
    with pytest.raises(UnusableEmail) as refusal:
        check_email(email)
    assert refusal.value.known_text == "Invalid email"


@pytest.mark.parametrize("typed", ["Alice@Example.org", " alice@example.ORG "])
def test_addresses_compare_without_case_and_space(typed: str) -> None:
    assert name_key(typed) == "alice@example.org"


def test_addresses_and_names_are_looked_up_apart() -> None:
    assert login_records("alice@example.org") is EMAILS
    assert login_records("alice") is USERNAMES


@pytest.mark.parametrize(
    ("email", "masked"),
    [("alice@example.com", "a***@example.com"), ("a@example.com", "a***@example.com")],
)
def test_a_log_does_not_show_whose_address_it_is(email: str, masked: str) -> None:
    """A-183"""
    assert masked_email(email) == masked
