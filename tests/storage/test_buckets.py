"""Token buckets against the textbook's: a level that grows with time and falls by one."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.storage.buckets import BucketRate, RetryAfter, Taken, take_one


class TextbookBucket:
    """Keeps the level itself, in exact numbers."""

    def __init__(self, capacity: int, per_s: Fraction) -> None:
        self.capacity = capacity
        self.per_s = per_s
        self.level = Fraction(capacity)
        self.at_ms = 0

    def take(self, now_ms: int) -> int | None:
        grown = (now_ms - self.at_ms) * self.per_s / 1000
        self.level = min(Fraction(self.capacity), self.level + grown)
        self.at_ms = now_ms
        if self.level >= 1:
            self.level -= 1
            return None
        return ceil((1 - self.level) / self.per_s)


@given(
    capacity=st.integers(1, 20),
    # Rates whose refill time is whole microseconds, so that both are exact.
    per_s=st.sampled_from(
        [Fraction(1, 60), Fraction(1, 3), Fraction(1), Fraction(8), Fraction(50)]
    ),
    pauses_ms=st.lists(st.integers(0, 5000) | st.integers(0, 200_000), max_size=60),
)
def test_the_bucket_gives_what_the_textbooks_gives(
    capacity: int, per_s: Fraction, pauses_ms: list[int]
) -> None:
    textbook, rate = TextbookBucket(capacity, per_s), BucketRate(capacity, float(per_s))
    full_at_us: int | None = None
    now_ms = 0
    for pause_ms in pauses_ms:
        now_ms += pause_ms
        outcome = take_one(full_at_us, rate, now_ms=now_ms)
        expected = textbook.take(now_ms)
        if isinstance(outcome, Taken):
            assert expected is None
            full_at_us = outcome.full_at_us
        else:
            assert outcome == RetryAfter(expected if expected is not None else -1)


def test_a_clock_that_is_set_back_locks_nobody_out_for_longer_than_an_empty_bucket() -> None:
    rate = BucketRate(2, 0.1)
    taken = take_one(None, rate, now_ms=1_000_000_000)
    assert isinstance(taken, Taken)
    assert take_one(taken.full_at_us, rate, now_ms=0) == RetryAfter(10)


@pytest.mark.parametrize(("capacity", "per_s"), [(0, 1.0), (1, 0.0), (1, -1.0), (1, float("nan"))])
def test_a_bucket_that_never_gives_is_refused(capacity: int, per_s: float) -> None:
    with pytest.raises(ValueError, match="bucket"):
        BucketRate(capacity, per_s)
