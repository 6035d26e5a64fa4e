"""How long does an account's password wait after failures? (A-181)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.idp.sign_in import (
    NONE_YET,
    PAUSE_S,
    FailureLimits,
    Failures,
    after_failure,
    seconds_to_wait,
)

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
