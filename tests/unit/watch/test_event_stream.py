"""Server-Sent Events: the examples of WHATWG HTML, section 9.2, and pieces of any size."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.watch.event_stream import (
    MAX_EVENT_BYTES,
    EventStream,
    EventTooLarge,
    ServerSentEvent,
)


def events_of(*pieces: bytes) -> list[ServerSentEvent]:
    stream = EventStream()
    return [event for piece in pieces for event in stream.feed(piece)]


def test_lines_of_data_are_one_message() -> None:
    content = b"data: YHOO\ndata: +2\ndata: 10\n\n"
    assert events_of(content) == [ServerSentEvent("YHOO\n+2\n10")]


def test_comments_and_ids_as_in_the_standard() -> None:
    """The second example: a comment, an event with an id, one that clears it, one with a space."""
    stream = EventStream()
    content = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third"
    assert stream.feed(content) == [ServerSentEvent("first event"), ServerSentEvent("second event")]
    assert stream.last_id == ""
    assert stream.feed(b" event\n\n") == [ServerSentEvent(" third event")]


def test_empty_data_as_in_the_standard() -> None:
    """The third example: one empty event, one of a line break, and one that never ends."""
    assert events_of(b"data\n\ndata\ndata\n\ndata:") == [ServerSentEvent(""), ServerSentEvent("\n")]


def test_with_and_without_a_space_is_the_same() -> None:
    assert events_of(b"data:test\n\ndata: test\n\n") == [
        ServerSentEvent("test"),
        ServerSentEvent("test"),
    ]


def test_the_name_of_an_event_holds_for_that_event_only() -> None:
    content = b"event: lost\ndata: x\n\ndata: y\n\n"
    assert events_of(content) == [ServerSentEvent("x", "lost"), ServerSentEvent("y")]


def test_an_event_id_applies_when_its_event_is_complete_and_persists() -> None:
    stream = EventStream("7")
    stream.feed(b"id: 8\ndata: x\n")
    assert stream.last_id == "7"
    stream.feed(b"\ndata: y\n\n")
    assert stream.last_id == "8"
    assert stream.feed(b"id: 9\n\n") == []
    assert stream.last_id == "9"
    stream.feed(b"id: 1\x000\n\nid: 1\x01\n\n")
    assert stream.last_id == "9"


def test_the_time_to_wait_is_noted_if_it_is_a_number() -> None:
    stream = EventStream()
    stream.feed(b"retry: 2000\nretry: soon\n\n")
    assert stream.retry_ms == 2000


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_in_three_ways_and_a_byte_order_mark_is_none_of_them(end: bytes) -> None:
    lines = [b"\xef\xbb\xbfdata: x", b"", b"data: y", b"", b""]
    assert events_of(end.join(lines) + b":") == [ServerSentEvent("x"), ServerSentEvent("y")]


_ends = st.sampled_from(["\n", "\r", "\r\n"])
_fields = st.sampled_from(["data: ä", "data:", "data", "id: 1", "event: e", ": c", "x", "", ""])


@given(lines=st.lists(st.tuples(_fields, _ends), max_size=20), data=st.data())
def test_it_does_not_matter_how_the_bytes_are_cut(
    lines: list[tuple[str, str]], data: st.DataObject
) -> None:
    content = "".join(field + end for field, end in lines).encode()
    cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=10).map(sorted))
    pieces = [content[start:end] for start, end in pairwise([0, *cuts, len(content)])]
    assert events_of(*pieces) == events_of(content)


def test_an_event_may_be_large_and_not_larger() -> None:
    fitting = b"data:" + b"x" * (MAX_EVENT_BYTES - 5)
    assert len(events_of(fitting, b"\n\n")) == 1
    with pytest.raises(EventTooLarge):
        events_of(fitting, b"x")
    with pytest.raises(EventTooLarge):
        events_of(fitting, b"\ndata:x\n")
