"""Times and durations of channels; rdflib is the judge of what the XML Schema types mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from podstead.notifications.channel_types import (
    read_duration,
    read_time,
    write_duration,
    write_time,
)

MOMENTS_MS = st.integers(0, 253_402_300_799_999)
DURATIONS_MS = st.integers(0, 10**12)


@given(MOMENTS_MS)
def test_a_time_that_is_written_can_be_read_by_everybody(at_ms: int) -> None:
    written = write_time(at_ms)
    assert read_time(written) == at_ms
    judged = rdflib.Literal(written, datatype=rdflib.XSD.dateTime).toPython()
    assert isinstance(judged, datetime)
    assert judged - datetime(1970, 1, 1, tzinfo=UTC) == timedelta(milliseconds=at_ms)


@given(DURATIONS_MS)
def test_a_duration_that_is_written_can_be_read_by_everybody(duration_ms: int) -> None:
    written = write_duration(duration_ms)
    assert read_duration(written) == duration_ms
    judged = rdflib.Literal(written, datatype=rdflib.XSD.duration).toPython()
    assert judged == timedelta(milliseconds=duration_ms)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-01-01T07:00:00.000Z", "2023-01-01T07:00:00.000Z"),
        ("2023-01-01T07:00:00", "2023-01-01T07:00:00.000Z"),
        ("2023-01-01T07:00:00.1239+01:00", "2023-01-01T06:00:00.123Z"),
        (" 2023-12-31T23:30:00-02:00\n", "2024-01-01T01:30:00.000Z"),
    ],
)
def test_times_are_read_with_or_without_a_zone(text: str, expected: str) -> None:
    """N-8: xsd:dateTime; without a zone it is UTC."""
    assert write_time(read_time(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023-01-01",
        "2023-13-01T00:00:00Z",
        "2023-01-01T25:00:00Z",
        "1969-12-31T23:59:59Z",
        "9999-12-31T23:59:59-01:00",
        "2023-W01-1T00:00:00Z",
        "now",
        "2023-01-01T07:00:00+99:00",
    ],
)
def test_invalid_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the texts of the standard library among them
        read_time(text)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("PT10S", 10_000),
        ("PT10s", 10_000),
        ("pt0.25s", 250),
        ("P1DT2H3M4.5S", 93_784_500),
        ("P1Y2M", (365 + 60) * 86_400_000),
        ("PT0S", 0),
    ],
)
def test_durations_are_read_in_any_case(text: str, expected_ms: int) -> None:
    """N-8: the drafts of channel types show lower-case ones."""
    assert read_duration(text) == expected_ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "10S", "-PT1S", "PT1.S", "P1S", "PT1H2", "PT\u0661S"]
)
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="No duration"):
        read_duration(text)
