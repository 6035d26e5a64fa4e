"""Messages as servers send them, read as changes."""

from __future__ import annotations

import json

import pytest
import rdflib

from podstead.watch.changes import (
    InvalidMessage,
    read_json,
    read_pub,
    split_json,
    split_turtle,
)

URL = "https://pods.example/stream"
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
    [change], rest = split_turtle(TURTLE.encode(), url=URL)
    assert rest == b""
    assert (change.activity, change.resource, change.state) == ("Add", NOTE, "s")
    assert change.published_ms == 1795262025799
    assert change.said["target"] == "https://pods.example/alice/"


def test_a_stream_of_turtle_may_be_cut_anywhere() -> None:
    content = TURTLE.replace("urn:uuid:1", "urn:uuid:2").encode()
    for cut in range(1, len(content)):
        first, rest = split_turtle(content[:cut], url=URL)
        second, rest = split_turtle(rest + content[cut:], url=URL)
        assert [change.message_id for change in [*first, *second]] == ["urn:uuid:2"], cut
        assert rest.strip() == b""


def test_several_messages_may_come_at_once() -> None:
    other = TURTLE.replace("urn:uuid:1", "urn:uuid:2")
    changes, rest = split_turtle((TURTLE + other).encode(), url=URL)
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
