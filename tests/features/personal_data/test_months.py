"""The grid of a month, compared with the calendar module of Python."""

from __future__ import annotations

import calendar

from hypothesis import given
from hypothesis import strategies as st

from podstead.features.personal_data.months import MAX_OF_DAY, weeks_of


@given(st.integers(1900, 2200), st.integers(1, 12))
def test_each_month_has_the_weeks_of_the_calendar(year: int, month: int) -> None:
    no_events: list[tuple[str, str, str]] = []
    weeks = weeks_of(f"{year:04}-{month:02}", no_events, today="2026-11-22")
    expected = calendar.Calendar().monthdayscalendar(year, month)
    shown = [[0 if each.is_beside else each.number for each in week] for week in weeks]
    assert shown == expected


def test_an_event_is_on_each_of_its_days() -> None:
    events = [("2026-10-30", "2026-11-02", "trip"), ("2026-11-30", "2027-01-01", "winter")]
    weeks = weeks_of("2026-11", events, today="2026-11-22")
    days = {each.day: each.events for week in weeks for each in week}
    assert [day for day, found in days.items() if "trip" in found] == [
        "2026-10-30", "2026-10-31", "2026-11-01", "2026-11-02"
    ]  # fmt: skip
    assert min(day for day, found in days.items() if "winter" in found) == "2026-11-30"
    assert [each.day for week in weeks for each in week if each.is_today] == ["2026-11-22"]


def test_a_day_with_very_many_events_counts_the_rest() -> None:
    events = [("2026-11-03", "2026-11-03", str(number)) for number in range(MAX_OF_DAY + 3)]
    weeks = weeks_of("2026-11", events, today="2026-11-22")
    [crowded] = [each for week in weeks for each in week if each.events]
    assert (len(crowded.events), crowded.more) == (MAX_OF_DAY, 3)
