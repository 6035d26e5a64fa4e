"""Which passwords may be chosen (A-93)."""

from __future__ import annotations

import unicodedata
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.idp.keys import (
    ALGORITHMS,
    DAY_S,
    ROTATION_S,
    ProviderKey,
    ProviderKeySet,
    next_key,
)
from podstead.idp.passwords import UnusablePassword, check_password, normalized_password
from podstead.idp.records import (
    EMAILS,
    USERNAMES,
    UnusableEmail,
    check_email,
    login_records,
    masked_email,
    name_key,
)
from podstead.idp.sign_in import (
    NONE_YET,
    PAUSE_S,
    FailureLimits,
    Failures,
    after_failure,
    seconds_to_wait,
)
from podstead.idp.token_issuing import ACCESS_TOKEN_S
from podstead.jose.tokens import SigningAlgorithm, SigningKeyPair

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


# --- How long does an account's password wait after failures? (A-181) --------------------------


LIMITS = FailureLimits()
OFF = FailureLimits(0, 0, 0, 0)
NOW_S = 1_800_000_000


def failed(times: int, limits: FailureLimits = LIMITS, *, every_s: int = 0) -> Failures:
    failures = NONE_YET
    for index in range(times):
        failures = after_failure(failures, limits, now_s=NOW_S + index * every_s)
    return failures


@pytest.mark.parametrize(
    ("times", "wait_s"),
    [(0, 0), (1, 0), (4, 0), (5, 1), (6, 2), (7, 4), (8, 8), (9, 16), (10, 32), (11, 60), (99, 60)],
)
def test_after_five_in_a_row_it_waits_ever_longer_up_to_a_minute(times: int, wait_s: int) -> None:
    """A-181"""
    failures = failed(times)
    assert seconds_to_wait(failures, LIMITS, now_s=NOW_S) == wait_s
    assert seconds_to_wait(failures, LIMITS, now_s=NOW_S + wait_s) == 0


def test_after_a_hundred_in_an_hour_it_pauses_for_a_quarter_of_one() -> None:
    """A-181"""
    limits = FailureLimits(in_a_row=0)
    assert seconds_to_wait(failed(99, limits), limits, now_s=NOW_S) == 0
    assert seconds_to_wait(failed(100, limits), limits, now_s=NOW_S) == 900
    assert seconds_to_wait(failed(100, limits), limits, now_s=NOW_S + 899) == 1
    assert seconds_to_wait(failed(100, limits), limits, now_s=NOW_S + 900) == 0


def test_failures_of_another_hour_do_not_add_up() -> None:
    limits = FailureLimits(in_a_row=0)
    # One each 37 seconds is 98 in an hour.
    failures = failed(1000, limits, every_s=37)
    assert seconds_to_wait(failures, limits, now_s=failures.last_s) == 0


def test_after_a_pause_the_count_restarts() -> None:
    limits = FailureLimits(in_a_row=0)
    later = after_failure(failed(100, limits), limits, now_s=NOW_S + 900)
    assert seconds_to_wait(later, limits, now_s=NOW_S + 900) == 0


def test_a_limit_of_none_is_off() -> None:
    assert seconds_to_wait(failed(500, OFF), OFF, now_s=NOW_S) == 0


@given(
    st.lists(st.integers(0, 5000), max_size=60),
    st.integers(-100_000, 100_000),
    st.integers(0, 10),
    st.integers(0, 20),
)
def test_nobody_waits_longer_than_a_pause_whatever_the_clock_does(
    gaps_s: list[int], shift_s: int, in_a_row: int, per_hour: int
) -> None:
    """A-181: no permanent lock-out, also if the clock is set back."""
    limits = FailureLimits(in_a_row=in_a_row, per_hour=per_hour)
    failures, now_s = NONE_YET, NOW_S
    for gap_s in gaps_s:
        now_s += gap_s
        failures = after_failure(failures, limits, now_s=now_s)
    assert 0 <= seconds_to_wait(failures, limits, now_s=now_s + shift_s) <= PAUSE_S
    assert seconds_to_wait(failures, limits, now_s=now_s + PAUSE_S) == 0


# --- E-mail addresses and names to sign in with (A-92) -----------------------------------------


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


# --- keys --------------------------------------------------------------------------------------
#
# Which key signs and which are published, at every moment of their lives?


START_S = 1_800_000_000
KEPT_BY_OTHERS_S = 300
"""The ``max-age`` of the key set (A-42)."""


@cache
def pair(number: int, algorithm: SigningAlgorithm = "ES256") -> SigningKeyPair:
    return SigningKeyPair.generate(algorithm)


def key(number: int, *, made_s: int, first: bool = False) -> ProviderKey:
    return ProviderKey(pair(number), made_s, made_s if first else made_s + DAY_S)


def two_keys(now_s: int) -> ProviderKeySet:
    """One from the start, and one made ten days later."""
    keys = [key(0, made_s=START_S, first=True), key(1, made_s=START_S + 10 * DAY_S)]
    return ProviderKeySet(keys, now_s)


def published(roster: ProviderKeySet) -> set[str]:
    return {jwk["kid"] for jwk in roster.published()}


OLD, NEW = range(2)
BOTH = {OLD, NEW}


@pytest.mark.parametrize(
    ("after_s", "signing", "shown", "kept"),
    [
        (10 * DAY_S, OLD, BOTH, BOTH),
        (11 * DAY_S - 1, OLD, BOTH, BOTH),
        (11 * DAY_S, NEW, BOTH, BOTH),
        (13 * DAY_S - 1, NEW, BOTH, BOTH),
        (13 * DAY_S, NEW, {NEW}, BOTH),
        (25 * DAY_S - 1, NEW, {NEW}, BOTH),
        (25 * DAY_S, NEW, {NEW}, {NEW}),
    ],
)
def test_the_life_of_two_keys(after_s: int, signing: int, shown: set[int], kept: set[int]) -> None:
    """A-44: published a day before it signs, and for two after; a hint for a fortnight"""
    roster = two_keys(START_S + after_s)
    assert roster.signer("ES256").key_id == pair(signing).key_id
    assert published(roster) == {pair(each).key_id for each in shown}
    outlived = {each.pair.key_id for each in roster.outlived()}
    assert outlived == {pair(each).key_id for each in BOTH - kept}
    for each in BOTH:
        key_id = pair(each).key_id
        assert (roster.verifier(key_id) is not None) is (each in shown)
        assert (roster.verifier(key_id, of_hint=True) is not None) is (each in kept)


def test_an_unknown_key_verifies_nothing() -> None:
    for key_id in (None, "", "x"):
        assert two_keys(START_S).verifier(key_id, of_hint=True) is None


def test_a_new_key_is_made_a_day_before_the_old_one_is_ninety_days_old() -> None:
    """A-44"""
    first = key(0, made_s=START_S, first=True)
    assert not ProviderKeySet([first], START_S + ROTATION_S - DAY_S - 1).wants_new("ES256")
    assert ProviderKeySet([first], START_S + ROTATION_S - DAY_S).wants_new("ES256")
    made = key(1, made_s=START_S + ROTATION_S - DAY_S)
    assert not ProviderKeySet([first, made], START_S + ROTATION_S).wants_new("ES256")
    assert ProviderKeySet([first], START_S).wants_new("RS256")


def test_the_key_set_has_public_members_only() -> None:
    """A-42; RFC 7517"""
    keys = [next_key(each, now_s=START_S, first=True) for each in ALGORITHMS]
    shown = {jwk["alg"]: jwk for jwk in ProviderKeySet(keys, START_S).published()}
    assert set(shown["ES256"]) == {"kty", "crv", "x", "y", "kid", "use", "alg"}
    assert set(shown["RS256"]) == {"kty", "n", "e", "kid", "use", "alg"}
    assert {jwk["use"] for jwk in shown.values()} == {"sig"}
    assert len(shown["RS256"]["n"]) >= 342  # 2048 bits


def test_a_clock_that_went_back_still_has_a_signer() -> None:
    roster = two_keys(START_S - DAY_S)
    assert len(published(roster)) == 2
    assert roster.signer("ES256").key_id in published(roster)


@given(
    rotations=st.lists(st.integers(0, 40 * DAY_S), max_size=6),
    signed=st.integers(0, 40 * DAY_S) | st.just(None),
    around=st.integers(-2 * ACCESS_TOKEN_S, 2 * ACCESS_TOKEN_S),
    passed=st.integers(0, ACCESS_TOKEN_S),
    seen_before=st.integers(0, KEPT_BY_OTHERS_S),
)
def test_a_token_can_be_verified_for_its_whole_life(
    rotations: list[int], signed: int | None, around: int, passed: int, seen_before: int
) -> None:
    """A-44: however often and closely keys are rotated, by the server and by operators, and for
    those who keep the key set as long as they may"""
    every = [key(0, made_s=START_S, first=True)]
    every += [key(n + 1, made_s=START_S + after_s) for n, after_s in enumerate(rotations)]

    def roster(now_s: int) -> ProviderKeySet:
        """What is there at a time: keys made by then, without what was removed before."""
        keys = [each for each in every if each.made_s <= now_s]
        for moment_s in sorted({*(START_S + each for each in rotations), now_s}):
            if moment_s <= now_s:
                gone = ProviderKeySet([each for each in keys if each.made_s <= moment_s], moment_s)
                keys = [each for each in keys if each not in gone.outlived()]
        return ProviderKeySet(keys, now_s)

    if signed is None:  # when one key follows another
        signed = max(0, (rotations[0] if rotations else 0) + DAY_S + around)
    signed_s = START_S + signed
    signer = roster(signed_s).signer("ES256").key_id
    later_s = signed_s + passed
    assert roster(later_s).verifier(signer) is not None
    assert signer in published(roster(later_s))
    # A copy of the key set from before has it, too, once there has been time for one.
    copied_s = max(START_S, signed_s - seen_before)
    assert signer in published(roster(copied_s))
