"""At most one message an interval, and the last one always (N-13)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.notifications.deliveries import Throttle
from podstead.notifications.messages import Activity, Notification
from podstead.storage.records import Version

PATH = ResourcePath("/alice/x")
NOTICE = Notification(0, Version("0" * 16), PATH, Activity.UPDATE, PATH, None, at_ms=0)


def sent(gaps_ms: list[int], rate_ms: int | None) -> list[tuple[int, int]]:
    """When which notice goes out, by a clock that goes on one by one: (time, number)."""
    arrivals: dict[int, list[int]] = {}
    now_ms = 0
    for number, gap_ms in enumerate(gaps_ms):
        now_ms += gap_ms
        arrivals.setdefault(now_ms, []).append(number)
    pace, out = Throttle(rate_ms), []
    for tick in range(now_ms + (rate_ms or 0) + 1):
        due = pace.release(now_ms=tick)
        if due is not None:
            out.append((tick, due.sequence))
        for number in arrivals.get(tick, ()):
            now = pace.offer(replace(NOTICE, sequence=number), now_ms=tick)
            if now is not None:
                out.append((tick, now.sequence))
    assert pace.due_ms is None
    return out


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.integers(1, 40))
def test_the_rate_is_kept_and_the_last_change_is_sent_in_time(
    gaps_ms: list[int], rate_ms: int
) -> None:
    out = sent(gaps_ms, rate_ms)
    times = [at_ms for at_ms, _ in out]
    numbers = [number for _, number in out]
    assert all(later - earlier >= rate_ms for earlier, later in itertools.pairwise(times))
    assert numbers == sorted(set(numbers)), "in order, none twice"
    assert numbers[-1] == len(gaps_ms) - 1
    assert times[-1] <= sum(gaps_ms) + rate_ms
    assert out[0] == (gaps_ms[0], out[0][1])


@pytest.mark.parametrize("rate_ms", [None, 0])
def test_without_a_rate_nothing_waits(rate_ms: int | None) -> None:
    assert sent([0, 0, 1, 0], rate_ms) == [(0, 0), (0, 1), (1, 2), (1, 3)]
