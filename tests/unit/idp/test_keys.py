"""Which key signs and which are published, at every moment of their lives? (A-42, A-44)"""

from __future__ import annotations

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
from podstead.idp.token_issuing import ACCESS_TOKEN_S
from podstead.jose.tokens import SigningAlgorithm, SigningKeyPair

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
