"""Messages say the same in both forms, wherever they are made; rdflib and pyld are the judges."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from importlib.resources import files

import pytest
import rdflib
from pyld import jsonld  # type: ignore[import-untyped]

from podstead.core.identifiers import ResourcePath
from podstead.notifications.messages import Activity, Messages, Notification, message_id
from podstead.storage.records import Version

BASE = "https://pod.example"
JSON_LD, TURTLE = "application/ld+json", "text/turtle"
AS = rdflib.Namespace("https://www.w3.org/ns/activitystreams#")
NOTIFY = rdflib.Namespace("http://www.w3.org/ns/solid/notifications#")
UPDATE = Notification(
    sequence=7,
    write=Version("0123456789abcdef"),
    topic=ResourcePath("/alice/caf%C3%A9.ttl"),
    activity=Activity.UPDATE,
    object=ResourcePath("/alice/caf%C3%A9.ttl"),
    target=None,
    at_ms=1_672_531_200_123,
    state="0123456789abcdef-ttl",
)
ADD = Notification(
    sequence=8,
    write=Version("0123456789abcdef"),
    topic=ResourcePath("/alice/"),
    activity=Activity.ADD,
    object=ResourcePath("/alice/x"),
    target=ResourcePath("/alice/"),
    at_ms=1_672_531_200_123,
    state="1-ttl",
)
DELETE = replace(UPDATE, activity=Activity.DELETE, state=None)
CONTEXT_FILES = {
    "https://www.w3.org/ns/activitystreams": "activitystreams.jsonld",
    "https://www.w3.org/ns/solid/notification/v1": "solid-notifications-v1.jsonld",
}


def bundled(url: str, _options: object) -> dict[str, object]:
    """What the JSON-LD library gets for a context."""
    content = (files("podstead.rdf") / "contexts" / CONTEXT_FILES[url]).read_bytes()
    return {"contextUrl": None, "documentUrl": url, "document": json.loads(content)}


def said(content: bytes, media_type: str) -> set[tuple[rdflib.term.Node, ...]]:
    """What a message says, as other libraries read it."""
    graph = rdflib.Graph()
    if media_type == TURTLE:
        graph.parse(data=content, format="turtle")
    else:
        options = {"format": "application/n-quads", "documentLoader": bundled}
        graph.parse(data=jsonld.to_rdf(json.loads(content), options), format="nt")
    return set(graph)


@pytest.mark.parametrize("media_type", [JSON_LD, TURTLE])
@pytest.mark.parametrize("notification", [UPDATE, ADD, DELETE], ids=["update", "add", "delete"])
def test_a_message_says_what_happened_to_what_and_when(
    notification: Notification, media_type: str
) -> None:
    """N-15, N-16, N-17."""
    subject = rdflib.URIRef(message_id(notification))
    expected = {
        (subject, rdflib.RDF.type, AS[notification.activity.value]),
        (subject, AS.object, rdflib.URIRef(BASE + notification.object)),
        (
            subject,
            AS.published,
            rdflib.Literal("2023-01-01T00:00:00.123Z", datatype=rdflib.XSD.dateTime),
        ),
    }
    if notification.target is not None:
        expected.add((subject, AS.target, rdflib.URIRef(BASE + notification.target)))
    if notification.state is not None:
        expected.add((subject, NOTIFY.state, rdflib.Literal(notification.state)))
    assert said(Messages(base_url=BASE).message(notification, media_type), media_type) == expected


def test_the_json_reads_as_json() -> None:
    """N-16: as clients read it that know nothing of RDF."""
    assert json.loads(Messages(base_url=BASE).message(ADD, JSON_LD)) == {
        "@context": [*CONTEXT_FILES],
        "id": message_id(ADD),
        "type": "Add",
        "object": f"{BASE}/alice/x",
        "target": f"{BASE}/alice/",
        "published": "2023-01-01T00:00:00.123Z",
        "state": "1-ttl",
    }
    assert "state" not in json.loads(Messages(base_url=BASE).message(DELETE, JSON_LD))


def test_a_message_is_on_one_line() -> None:
    """N-23: it becomes one ``data:`` line of an event."""
    assert b"\n" not in Messages(base_url=BASE).message(UPDATE, JSON_LD)


def test_the_id_is_that_of_the_change_and_the_topic() -> None:
    """N-16: the same on every worker, and another for everything else."""
    assert uuid.UUID(message_id(UPDATE)).urn == message_id(UPDATE)
    assert message_id(replace(UPDATE, state="later")) == message_id(UPDATE)
    others = [
        replace(UPDATE, sequence=8),
        replace(UPDATE, write=Version("fedcba9876543210")),
        replace(UPDATE, topic=ResourcePath("/alice/")),
    ]
    assert len({message_id(each) for each in [UPDATE, *others]}) == 4


def test_all_receivers_share_the_bytes() -> None:
    messages = Messages(base_url=BASE)
    for media_type in (JSON_LD, TURTLE):
        first = messages.message(UPDATE, media_type)
        assert messages.message(replace(UPDATE), media_type) is first


def test_a_text_is_that_of_its_notification_and_media_type() -> None:
    """Also when other ones are asked for in between, and for equal notifications of their own."""
    messages = Messages(base_url=BASE)
    for notification in (UPDATE, UPDATE, ADD, replace(UPDATE), DELETE):
        for media_type in (JSON_LD, TURTLE, JSON_LD):
            expected = messages.message(notification, media_type).decode()
            assert messages.text(notification, media_type) == expected
    assert messages.text(UPDATE, JSON_LD) is messages.text(UPDATE, JSON_LD)
