"""Which notifications follow from a change: N-17 for channels, L-6 and L-7 for solid-0.1."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from importlib.resources import files

import pytest
import rdflib
from pyld import jsonld  # type: ignore[import-untyped]

from podstead.core.identifiers import ResourcePath
from podstead.notifications.messages import (
    Activity,
    Messages,
    Notification,
    message_id,
    notifications_of,
    topics_of,
)
from podstead.storage import records
from podstead.storage.records import Change, LoggedChange, Version

CREATE = records.ChangeType.CREATE
UPDATE = records.ChangeType.UPDATE
DELETE = records.ChangeType.DELETE
UNCHANGED = records.ChangeType.UNCHANGED

EXPECTED: list[tuple[records.ChangeType, str, set[tuple[str, Activity]]]] = [
    # A document: itself, and its container's listing.
    (CREATE, "/a/d/x", {("/a/d/x", Activity.CREATE), ("/a/d/", Activity.ADD)}),
    (UPDATE, "/a/d/x", {("/a/d/x", Activity.UPDATE), ("/a/d/", Activity.TOUCH)}),
    (DELETE, "/a/d/x", {("/a/d/x", Activity.DELETE), ("/a/d/", Activity.REMOVE)}),
    (UNCHANGED, "/a/d/x", {("/a/d/x", Activity.TOUCH)}),
    # A container: its description is of it, and comes and goes with it.
    (
        CREATE,
        "/a/d/",
        {("/a/d/", Activity.CREATE), ("/a/d/.meta", Activity.CREATE), ("/a/", Activity.ADD)},
    ),
    (
        UPDATE,
        "/a/d/",
        {("/a/d/", Activity.UPDATE), ("/a/d/.meta", Activity.UPDATE), ("/a/", Activity.TOUCH)},
    ),
    (
        DELETE,
        "/a/d/",
        {("/a/d/", Activity.DELETE), ("/a/d/.meta", Activity.DELETE), ("/a/", Activity.REMOVE)},
    ),
    (UNCHANGED, "/a/d/", {("/a/d/", Activity.TOUCH), ("/a/d/.meta", Activity.TOUCH)}),
    # A storage lies in no container.
    (CREATE, "/a/", {("/a/", Activity.CREATE), ("/a/.meta", Activity.CREATE)}),
    (DELETE, "/a/", {("/a/", Activity.DELETE), ("/a/.meta", Activity.DELETE)}),
    # Auxiliary resources are members of nothing.
    (CREATE, "/a/d/x.acl", {("/a/d/x.acl", Activity.CREATE)}),
    (UPDATE, "/a/d/.acl", {("/a/d/.acl", Activity.UPDATE)}),
    (DELETE, "/a/d/x.meta", {("/a/d/x.meta", Activity.DELETE)}),
    (UNCHANGED, "/a/d/x.meta", {("/a/d/x.meta", Activity.TOUCH)}),
    (UPDATE, "/a/.acl", {("/a/.acl", Activity.UPDATE)}),
]


def logged(activity: records.ChangeType, path: str) -> LoggedChange:
    change = Change(ResourcePath(path), activity, "https://alice.example/#me")
    return LoggedChange(7, change, Version("v"), 1234)


@pytest.mark.parametrize(("activity", "path", "expected"), EXPECTED)
def test_each_subscriber_gets_what_it_may_read(
    activity: records.ChangeType, path: str, expected: set[tuple[str, Activity]]
) -> None:
    """N-17, L-6, L-7, L-12."""
    notifications = notifications_of(logged(activity, path))
    assert {
        (notification.topic, notification.activity) for notification in notifications
    } == expected
    assert len(notifications) == len(expected)


@pytest.mark.parametrize(("activity", "path", "expected"), EXPECTED)
def test_no_topic_is_overlooked(
    activity: records.ChangeType, path: str, expected: set[tuple[str, Activity]]
) -> None:
    assert {topic for topic, _ in expected} <= set(topics_of(ResourcePath(path)))


def test_a_notification_names_the_change_that_caused_it() -> None:
    resource, container = notifications_of(logged(CREATE, "/a/d/x"))
    path, parent = ResourcePath("/a/d/x"), ResourcePath("/a/d/")
    assert resource == Notification(7, Version("v"), path, Activity.CREATE, path, None, 1234)
    assert container == Notification(7, Version("v"), parent, Activity.ADD, path, parent, 1234)


def test_channels_omit_only_what_is_specific_to_the_older_protocol() -> None:
    """N-19: a no-op is no event, and a container's listing is no more than its members."""
    told = {
        activity.name
        for kind, path, _ in EXPECTED
        for notification in notifications_of(logged(kind, path))
        if notification.is_for_channels
        for activity in [notification.activity]
    }
    assert told == {"CREATE", "UPDATE", "DELETE", "ADD", "REMOVE"}


def test_deep_descendants_do_not_notify_ancestors() -> None:
    topics = {notification.topic for notification in notifications_of(logged(CREATE, "/a/b/c/d/x"))}
    assert topics == {"/a/b/c/d/x", "/a/b/c/d/"}


# --- messages ----------------------------------------------------------------------------------
#
# Messages say the same in both forms, wherever they are made; rdflib and pyld are the judges.


BASE = "https://pod.example"
JSON_LD, TURTLE = "application/ld+json", "text/turtle"
AS = rdflib.Namespace("https://www.w3.org/ns/activitystreams#")
NOTIFY = rdflib.Namespace("http://www.w3.org/ns/solid/notifications#")
UPDATE_NOTIFICATION = Notification(
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
DELETE_NOTIFICATION = replace(UPDATE_NOTIFICATION, activity=Activity.DELETE, state=None)
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
@pytest.mark.parametrize(
    "notification", [UPDATE_NOTIFICATION, ADD, DELETE_NOTIFICATION], ids=["update", "add", "delete"]
)
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
    assert "state" not in json.loads(Messages(base_url=BASE).message(DELETE_NOTIFICATION, JSON_LD))


def test_a_message_is_on_one_line() -> None:
    """N-23: it becomes one ``data:`` line of an event."""
    assert b"\n" not in Messages(base_url=BASE).message(UPDATE_NOTIFICATION, JSON_LD)


def test_the_id_is_that_of_the_change_and_the_topic() -> None:
    """N-16: the same on every worker, and another for everything else."""
    assert uuid.UUID(message_id(UPDATE_NOTIFICATION)).urn == message_id(UPDATE_NOTIFICATION)
    assert message_id(replace(UPDATE_NOTIFICATION, state="later")) == message_id(
        UPDATE_NOTIFICATION
    )
    others = [
        replace(UPDATE_NOTIFICATION, sequence=8),
        replace(UPDATE_NOTIFICATION, write=Version("fedcba9876543210")),
        replace(UPDATE_NOTIFICATION, topic=ResourcePath("/alice/")),
    ]
    assert len({message_id(each) for each in [UPDATE_NOTIFICATION, *others]}) == 4


def test_all_receivers_share_the_bytes() -> None:
    messages = Messages(base_url=BASE)
    for media_type in (JSON_LD, TURTLE):
        first = messages.message(UPDATE_NOTIFICATION, media_type)
        assert messages.message(replace(UPDATE_NOTIFICATION), media_type) is first


def test_a_text_is_that_of_its_notification_and_media_type() -> None:
    """Also when other ones are asked for in between, and for equal notifications of their own."""
    messages = Messages(base_url=BASE)
    for notification in (
        UPDATE_NOTIFICATION,
        UPDATE_NOTIFICATION,
        ADD,
        replace(UPDATE_NOTIFICATION),
        DELETE_NOTIFICATION,
    ):
        for media_type in (JSON_LD, TURTLE, JSON_LD):
            expected = messages.message(notification, media_type).decode()
            assert messages.text(notification, media_type) == expected
    assert messages.text(UPDATE_NOTIFICATION, JSON_LD) is messages.text(
        UPDATE_NOTIFICATION, JSON_LD
    )
