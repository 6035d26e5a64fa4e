"""Which backups a series keeps: the rules against a plain model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.storage.backup.retention import KeepRule, kept, parse_interval_s, parse_keep_rules

_FORMATS = {"h": "%Y-%m-%d %H", "d": "%Y-%m-%d", "w": "%G week %V", "m": "%Y-%m", "y": "%Y"}
_rules = st.lists(st.builds(KeepRule, st.integers(1, 9), st.sampled_from("hdwmy")), max_size=4)
_moments = st.lists(
    st.integers(0, 386 * 24 * 60).map(
        lambda minutes: datetime(2024, 12, 20, tzinfo=UTC) + timedelta(minutes=minutes)
    ),
    unique=True,
    max_size=40,
)


def model(moments: Sequence[datetime], rules: Sequence[KeepRule]) -> set[datetime]:
    """For each rule, go back in time and count the periods that were seen."""
    keep = {max(moments)} if moments else set()
    for rule in rules:
        seen: list[str] = []
        for moment in sorted(moments, reverse=True):
            period = moment.strftime(_FORMATS[rule.unit])
            if period in seen:
                continue
            seen.append(period)
            if len(seen) <= rule.count:
                keep.add(moment)
    return keep


@given(_moments, _rules)
def test_the_rules_keep_what_the_model_keeps(
    moments: list[datetime], rules: list[KeepRule]
) -> None:
    assert kept(moments, rules) == model(moments, rules)


@given(_moments, _rules)
def test_what_is_kept_is_kept_again(moments: list[datetime], rules: list[KeepRule]) -> None:
    """Pruning twice removes nothing more."""
    once = kept(moments, rules)
    assert kept(once, rules) == once


def test_an_hourly_series_of_a_year_shrinks_to_the_numbers_of_the_rules() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    series: set[datetime] = set()
    for hour in range(0, 365 * 24, 6):
        series = set(kept({*series, start + timedelta(hours=hour)}, parse_keep_rules("7d,4w,6m")))
        assert len(series) <= 7 + 4 + 6
    assert min(series) == datetime(2026, 7, 31, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0d", "7d,", "7x", "-1d", "7d 4w", "1.5d", "99999d"]
)
def test_other_rules_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="7d,4w,6m"):
        parse_keep_rules(text)


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("6h", 21_600), ("1d", 86_400)])
def test_an_interval_has_a_unit(text: str, seconds: int) -> None:
    assert parse_interval_s(text) == seconds


@pytest.mark.parametrize("text", ["", "6", "h", "0h", "6 hours", "-1h"])
def test_other_intervals_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="6h"):
        parse_interval_s(text)
