"""Messages that are not accepted are sent again at growing intervals, for a day (N-21)."""

from __future__ import annotations

import itertools

from podstead.features.webhooks.records import GIVEN_UP_AFTER_MS, DeliveryAttempts

DAY_MS = 24 * 3600 * 1000


def test_the_waits_grow_until_they_are_half_an_hour() -> None:
    attempts, now_ms, waits_s = DeliveryAttempts(), 1_000_000, []
    for _ in range(8):
        attempts = attempts.failed(now_ms=now_ms)
        waits_s.append((attempts.next_ms - now_ms) // 1000)
        now_ms = attempts.next_ms
    assert waits_s == [1, 5, 30, 300, 1800, 1800, 1800, 1800]


def test_a_receiver_that_takes_nothing_for_a_day_is_given_up() -> None:
    assert GIVEN_UP_AFTER_MS == DAY_MS
    began_ms = now_ms = 5_000_000
    attempts = DeliveryAttempts()
    assert not attempts.are_enough(now_ms=now_ms)
    for number in itertools.count(1):
        attempts = attempts.failed(now_ms=now_ms)
        assert attempts.failures == number
        if attempts.are_enough(now_ms=now_ms):
            break
        now_ms = attempts.next_ms
    assert DAY_MS <= now_ms - began_ms < DAY_MS + 1_800_000


def test_the_day_begins_with_the_first_failure() -> None:
    """Not with the epoch, nor with what was taken before."""
    attempts = DeliveryAttempts().failed(now_ms=100 * DAY_MS)
    assert not attempts.are_enough(now_ms=101 * DAY_MS - 1)
    assert attempts.are_enough(now_ms=101 * DAY_MS)
