"""At most one message an interval, times and durations, and the queues of subscribers."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.date_times import read_time, write_time
from podstead.core.identifiers import ResourcePath
from podstead.notifications.channel_types import (
    read_duration,
    write_duration,
)
from podstead.notifications.deliveries import (
    EndReason,
    QueueClosed,
    SubscriberQueue,
    Throttle,
    Watch,
)
from podstead.notifications.messages import Activity, Notification
from podstead.notifications.readers import Subscriber
from podstead.storage.records import Version

# --- At most one message an interval, and the last one always (N-13) ---------------------------


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


def test_what_comes_when_the_interval_is_over_is_sent_at_once() -> None:
    pace = Throttle(10)
    assert pace.offer(NOTICE, now_ms=0) is NOTICE
    assert pace.offer(NOTICE, now_ms=10) is NOTICE


@pytest.mark.parametrize("rate_ms", [None, 0])
def test_without_a_rate_nothing_waits(rate_ms: int | None) -> None:
    assert sent([0, 0, 1, 0], rate_ms) == [(0, 0), (0, 1), (1, 2), (1, 3)]


# --- times -------------------------------------------------------------------------------------
#
# Times and durations of channels; rdflib is the judge of what the XML Schema types mean.


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


# --- A subscriber queue keeps the order and its limit, and says why it ended -------------------


async def test_letters_come_in_their_order() -> None:
    queue = SubscriberQueue(capacity=3)
    for text in ("a", "b", "c"):
        queue.put(text)
    assert [await queue.next() for _ in range(3)] == ["a", "b", "c"]


async def test_a_reader_waits_for_the_next_letter() -> None:
    queue = SubscriberQueue(capacity=1)
    reading = asyncio.create_task(queue.next())
    await asyncio.sleep(0)
    queue.put("a")
    assert await reading == "a"


async def test_a_wait_that_was_given_up_loses_nothing() -> None:
    queue = SubscriberQueue(capacity=2)
    reading = asyncio.create_task(queue.next())
    await asyncio.sleep(0)
    reading.cancel()
    queue.put("a")
    await asyncio.gather(reading, return_exceptions=True)
    assert await queue.next() == "a"


async def test_as_many_letters_may_wait_as_its_capacity() -> None:
    """N-31."""
    queue = SubscriberQueue(capacity=2)
    queue.put("a")
    queue.put("b")
    assert queue.ending is None
    queue.put("c")
    with pytest.raises(QueueClosed) as closed:
        await queue.next()
    assert closed.value.ending is EndReason.SLOW


async def test_a_waiting_reader_is_woken_at_the_end() -> None:
    queue = SubscriberQueue(capacity=1)
    reading = asyncio.create_task(queue.next())
    await asyncio.sleep(0)
    queue.close(EndReason.STOPPING)
    with pytest.raises(QueueClosed):
        await reading
    assert queue.ending is EndReason.STOPPING


def test_its_watches_are_closed_with_it_once() -> None:
    queue, closed = SubscriberQueue(capacity=1), list[Watch]()
    attached, detached, late = (
        Watch(ResourcePath(f"/{name}"), Subscriber(), queue, 0, closed.append)
        for name in ("attached", "detached", "late")
    )
    queue.attach(attached)
    queue.attach(detached)
    queue.detach(detached)
    queue.close()
    queue.close(EndReason.SLOW)
    queue.attach(late)
    assert closed == [attached, late]
    assert queue.ending is EndReason.CLOSED
    queue.put("too late")
