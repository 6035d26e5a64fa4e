"""What the headers and descriptions of servers offer to a receiver of changes."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.features.watch.changes import (
    MAX_EVENT_BYTES,
    EventStream,
    EventTooLarge,
    InvalidMessage,
    ServerSentEvent,
    read_json,
    read_pub,
    split_json,
    split_turtle,
)
from podstead.features.watch.discovery import (
    ChangeSource,
    Protocol,
    preferred,
    read_links,
    services_in,
)
from podstead.rdf.codecs import parse

URL = "https://pods.example/alice/notes/"
STORAGE_DESCRIPTION = "http://www.w3.org/ns/solid/terms#storageDescription"
STREAMS = "http://www.w3.org/ns/solid/terms#updatesViaStreamingHttp2023"

# What the Community Solid Server 7 says of itself.
COMMUNITY = """<../> a <http://www.w3.org/ns/pim/space#Storage>;
  <http://www.w3.org/ns/solid/notifications#subscription>
    <../.notifications/WebSocketChannel2023/>, <../.notifications/WebhookChannel2023/>.
<../.notifications/WebSocketChannel2023/>
  <http://www.w3.org/ns/solid/notifications#channelType>
    <http://www.w3.org/ns/solid/notifications#WebSocketChannel2023>;
  <http://www.w3.org/ns/solid/notifications#feature>
    <http://www.w3.org/ns/solid/notifications#state>.
<../.notifications/WebhookChannel2023/>
  <http://www.w3.org/ns/solid/notifications#channelType>
    <http://www.w3.org/ns/solid/notifications#WebhookChannel2023>.
"""
# The example of Solid Notifications Protocol, section 4.1, with the types of this test.
OF_THE_PROTOCOL = """{
  "@context": ["https://www.w3.org/ns/solid/notification/v1"],
  "id": "https://pods.example/",
  "subscription": [
    {"id": "https://pods.example/ws", "channelType": "WebSocketChannel2023"},
    {"id": "https://pods.example/sse", "channelType": "EventSourceChannel2023",
     "feature": ["state", "endAt"]}
  ]
}"""


def test_links_lead_to_descriptions_the_storage_first() -> None:
    """N-1; as several headers, and as one."""
    links = ['<.meta>; rel="describedby"', f'</.well-known/solid>; rel="{STORAGE_DESCRIPTION}"']
    expected = ("https://pods.example/.well-known/solid", f"{URL}.meta")
    for fields in ([("link", each) for each in links], [("link", ", ".join(links))]):
        pointers = read_links(fields, url=URL)
        assert pointers.is_solid
        assert pointers.descriptions == expected
        assert pointers.ways == ()


def test_headers_lead_to_streams_and_sockets() -> None:
    """N-22, L-1."""
    fields = [("link", f'</stream>; rel="{STREAMS}"'), ("updates-via", "wss://pods.example/ws")]
    assert read_links(fields, url=URL).ways == (
        ChangeSource(Protocol.STREAM_OF_RESOURCE, "https://pods.example/stream"),
        ChangeSource(Protocol.SOLID_0_1, "wss://pods.example/ws"),
    )


def test_a_link_about_another_resource_says_nothing() -> None:
    fields = [("link", f'</x>; rel="{STORAGE_DESCRIPTION}"; anchor="https://other.example/"')]
    assert read_links(fields, url=URL).descriptions == ()


@pytest.mark.parametrize("target", ["http://[bad", "a b", "\\\\x"])
def test_a_link_to_nowhere_is_passed_over(target: str) -> None:
    fields = [("link", f'<{target}>; rel="acl", </d>; rel="describedby"')]
    assert read_links(fields, url=URL).descriptions == ("https://pods.example/d",)


def test_a_page_of_another_kind_of_server_is_recognized() -> None:
    fields = [("link", '</style.css>; rel="preload"'), ("content-type", "text/html")]
    assert not read_links(fields, url=URL).is_solid
    assert read_links([("link", '<.acl>; rel="acl"')], url=URL).is_solid


def test_the_description_of_the_community_server_is_understood() -> None:
    base = "https://pods.example/.well-known/solid"
    graph = parse(COMMUNITY.encode(), "text/turtle", base_iri=base).graph
    service = "https://pods.example/.notifications/WebSocketChannel2023/"
    assert services_in(graph) == (ChangeSource(Protocol.WEB_SOCKET, service, takes_state=True),)


def test_a_description_in_json_ld_is_understood() -> None:
    graph = parse(
        OF_THE_PROTOCOL.encode(),
        "application/ld+json",
        base_iri=URL,
        contexts=bundled_contexts(),
    ).graph
    assert set(services_in(graph)) == {
        ChangeSource(Protocol.WEB_SOCKET, "https://pods.example/ws"),
        ChangeSource(Protocol.EVENT_SOURCE, "https://pods.example/sse", takes_state=True),
    }


def test_channels_that_resend_missed_notifications_are_preferred() -> None:
    ways = [ChangeSource(protocol, "https://pods.example/") for protocol in reversed(Protocol)]
    order = []
    while (best := preferred(ways)) is not None:
        order.append(best.protocol.value)
        ways.remove(best)
    assert order == [
        "EventSourceChannel2023",
        "WebSocketChannel2023",
        "StreamingHTTPChannel2023",
        "StreamingHTTPChannel2023 of the resource",
        "solid-0.1",
    ]


# --- Messages as servers send them, read as changes --------------------------------------------


CHANGED_URL = "https://pods.example/stream"
NOTE = "https://pods.example/alice/note"
MESSAGE = {
    "@context": [
        "https://www.w3.org/ns/activitystreams",
        "https://www.w3.org/ns/solid/notification/v1",
    ],
    "id": "urn:uuid:1",
    "type": "Add",
    "object": NOTE,
    "target": "https://pods.example/alice/",
    "state": '"5-text/turtle"',
    "published": "2026-11-21T11:53:45.799Z",
}
TURTLE = f"""@prefix as: <https://www.w3.org/ns/activitystreams#>.
@prefix notify: <http://www.w3.org/ns/solid/notifications#>.
<urn:uuid:1> a as:Add;
    as:object <{NOTE}>;
    as:target <https://pods.example/alice/>;
    notify:state "s";
    as:published "2026-11-21T11:53:45.799Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>.
"""


def test_a_message_in_json_ld_says_what_has_happened_to_what_and_when() -> None:
    change = read_json(json.dumps(MESSAGE).encode())
    assert (change.activity, change.resource, change.said) == ("Add", NOTE, MESSAGE)
    assert (change.state, change.message_id) == ('"5-text/turtle"', "urn:uuid:1")
    assert change.published_ms == 1795262025799


@pytest.mark.parametrize(
    ("activity", "resource"),
    [
        (["Update"], [NOTE]),
        ("as:Update", {"id": NOTE}),
        ("https://www.w3.org/ns/activitystreams#Update", {"@id": NOTE, "type": "x"}),
    ],
)
def test_other_ways_to_write_the_same_are_understood(activity: object, resource: object) -> None:
    change = read_json(json.dumps({"type": activity, "object": resource}).encode())
    assert (change.activity, change.resource) == ("Update", NOTE)
    assert (change.published_ms, change.state) == (None, None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"ping",
        b"[]",
        b'"Update"',
        b"{}",
        b'{"type":"Update"}',
        b'{"object":"https://pods.example/"}',
        b'{"type":[],"object":[]}',
        b'{"type":7,"object":{}}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_anything_else_is_not_a_message(content: bytes) -> None:
    with pytest.raises(InvalidMessage):
        read_json(content)


def test_a_time_that_is_none_is_left_out() -> None:
    content = json.dumps({**MESSAGE, "published": "today"}).encode()
    assert read_json(content).published_ms is None


def test_turtle_says_the_same() -> None:
    """The example is sound by another parser."""
    assert len(rdflib.Graph().parse(data=TURTLE, format="turtle")) == 5
    [change], rest = split_turtle(TURTLE.encode(), url=CHANGED_URL)
    assert rest == b""
    assert (change.activity, change.resource, change.state) == ("Add", NOTE, "s")
    assert change.published_ms == 1795262025799
    assert change.said["target"] == "https://pods.example/alice/"


def test_a_stream_of_turtle_may_be_cut_anywhere() -> None:
    content = TURTLE.replace("urn:uuid:1", "urn:uuid:2").encode()
    for cut in range(1, len(content)):
        first, rest = split_turtle(content[:cut], url=CHANGED_URL)
        second, rest = split_turtle(rest + content[cut:], url=CHANGED_URL)
        assert [change.message_id for change in [*first, *second]] == ["urn:uuid:2"], cut
        assert rest.strip() == b""


def test_several_messages_may_come_at_once() -> None:
    other = TURTLE.replace("urn:uuid:1", "urn:uuid:2")
    changes, rest = split_turtle((TURTLE + other).encode(), url=CHANGED_URL)
    assert [change.message_id for change in changes] == ["urn:uuid:1", "urn:uuid:2"]
    assert rest == b""


@pytest.mark.parametrize("indent", [None, 2])
def test_a_stream_of_json_may_be_cut_anywhere(indent: int | None) -> None:
    messages = [{**MESSAGE, "id": f"urn:uuid:{number}"} for number in (1, 2)]
    content = "".join(json.dumps(each, indent=indent) + "\n" for each in messages).encode()
    for cut in range(1, len(content)):
        first, rest = split_json(content[:cut])
        second, rest = split_json(rest + content[cut:])
        found = [change.message_id for change in [*first, *second]]
        assert found == ["urn:uuid:1", "urn:uuid:2"], cut
        assert rest == b""


def test_pub_says_that_something_changed_but_not_what() -> None:
    """L-5."""
    change = read_pub(NOTE, now_ms=1795262025799)
    assert (change.activity, change.resource) == ("Activity", NOTE)
    assert change.said["published"] == "2026-11-21T11:53:45.799Z"


def test_pub_without_a_url_is_not_a_message() -> None:
    with pytest.raises(InvalidMessage):
        read_pub("", now_ms=0)


# --- event stream ------------------------------------------------------------------------------
#
# Server-Sent Events: the examples of WHATWG HTML, section 9.2, and pieces of any size.


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
