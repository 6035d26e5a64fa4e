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
from podstead.notifications.solid_0_1 import (
    GREETING,
    MAX_URL_CHARACTERS,
    Conversation,
    Forget,
    LineCredential,
    Say,
    SubprotocolOffer,
    Subscribe,
    offer_of,
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


# --- The lines of solid-0.1, both ways (L-2 to L-12) -------------------------------------------


ORIGIN = "https://pods.example"
DOCUMENT = f"{ORIGIN}/alice/x.ttl"


def conversation(*aliases: str, max_urls: int = 1000) -> Conversation:
    return Conversation(origin=ORIGIN, aliases=aliases, max_urls=max_urls)


def notification(topic: str, write: str = "1") -> Notification:
    path = ResourcePath(topic)
    return Notification(1, Version(write), path, Activity.UPDATE, path, None, 0)


def accepted(spoken: Conversation, url: str) -> Subscribe:
    asked = spoken.read(f"sub {url}")
    assert isinstance(asked, Subscribe), asked
    assert spoken.accept(asked) == f"ack {url}"
    return asked


@pytest.mark.parametrize(
    ("offered", "offer"),
    [
        ([], SubprotocolOffer.NOTHING),
        (["solid-0.1"], SubprotocolOffer.THIS),
        (["chat", "solid-0.1"], SubprotocolOffer.THIS),
        (["chat"], SubprotocolOffer.OTHERS),
        (["SOLID-0.1"], SubprotocolOffer.OTHERS),
    ],
)
def test_the_protocol_is_spoken_unless_only_others_are_offered(
    offered: list[str], offer: SubprotocolOffer
) -> None:
    """L-2."""
    assert offer_of(offered) is offer


def test_the_greeting_is_that_of_other_servers() -> None:
    """L-3."""
    assert GREETING == "protocol solid-0.1"


@pytest.mark.parametrize(
    ("url", "topic"),
    [
        (DOCUMENT, "/alice/x.ttl"),
        (f"{DOCUMENT}#me", "/alice/x.ttl"),
        (f"{DOCUMENT}?a=b", "/alice/x.ttl"),
        ("HTTPS://Pods.Example/alice/x.ttl", "/alice/x.ttl"),
        (f"{ORIGIN}/alice/", "/alice/"),
        (f"{ORIGIN}/alice/x.ttl.acl", "/alice/x.ttl.acl"),
        (f"{ORIGIN}/alice/caf%c3%a9", "/alice/caf%C3%A9"),
        (f"{ORIGIN}/alice/café", "/alice/caf%C3%A9"),
        ("/alice/x.ttl", "/alice/x.ttl"),
        (ORIGIN, "/"),
    ],
)
def test_a_url_of_this_server_names_a_resource(url: str, topic: str) -> None:
    """L-4: relative ones as well, and the answer repeats what was asked letter by letter."""
    assert accepted(conversation(), url).topic == topic


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example/alice/x.ttl",
        "http://pods.example/alice/x.ttl",
        "https://pods.example:8443/alice/x.ttl",
        "https://pods.example.evil.example/alice/x.ttl",
        "https://pods.example@evil.example/alice/",
        "//pods.example/alice/x.ttl",
        "alice/x.ttl",
        "",
        f"{ORIGIN}/alice/../bob/x",
        f"{ORIGIN}/alice/%zz",
        f"{ORIGIN}//x",
    ],
)
def test_any_other_url_is_forbidden(url: str) -> None:
    """L-4."""
    assert conversation().read(f"sub {url}") == Say(f"err {url} forbidden")


def test_the_server_goes_by_its_aliases_too() -> None:
    """A-11: on loopback, every name that requests may use."""
    spoken = conversation("http://127.0.0.1:3000")
    assert accepted(spoken, "http://127.0.0.1:3000/alice/").topic == "/alice/"


def test_a_notice_is_one_line_for_each_url_of_its_topic() -> None:
    """L-5: clients compare the text that they sent."""
    spoken = conversation()
    accepted(spoken, DOCUMENT)
    accepted(spoken, f"{DOCUMENT}#me")
    accepted(spoken, "/alice/y")
    lines = [f"pub {DOCUMENT}", f"pub {DOCUMENT}#me"]
    assert spoken.publish(notification("/alice/x.ttl")) == lines
    assert spoken.publish(notification("/alice/z")) == []


def test_one_request_is_notified_once_for_each_url() -> None:
    """L-7: a container hears that it was created and that it has a member, of one request."""
    spoken = conversation()
    accepted(spoken, "/alice/")
    accepted(spoken, "/alice/x.ttl")
    assert spoken.publish(notification("/alice/", "1")) == ["pub /alice/"]
    assert spoken.publish(notification("/alice/x.ttl", "1")) == ["pub /alice/x.ttl"]
    assert spoken.publish(notification("/alice/", "1")) == []
    assert spoken.publish(notification("/alice/", "2")) == ["pub /alice/"]


def test_a_subscription_may_be_repeated() -> None:
    spoken = conversation(max_urls=1)
    accepted(spoken, DOCUMENT)
    accepted(spoken, DOCUMENT)
    assert spoken.publish(notification("/alice/x.ttl")) == [f"pub {DOCUMENT}"]


def test_a_subscription_is_given_up_without_an_answer() -> None:
    """L-8."""
    spoken = conversation()
    accepted(spoken, DOCUMENT)
    accepted(spoken, f"{DOCUMENT}#me")
    assert spoken.read(f"unsub {DOCUMENT}") is None
    assert spoken.publish(notification("/alice/x.ttl")) == [f"pub {DOCUMENT}#me"]
    assert spoken.read(f"unsub {DOCUMENT}#me") == Forget(ResourcePath("/alice/x.ttl"))
    assert spoken.publish(notification("/alice/x.ttl", "2")) == []
    assert spoken.read(f"unsub {DOCUMENT}") is None
    assert spoken.read("unsub https://other.example/") is None


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("hello", "hello"),
        ("", ""),
        ("subscribe x", "subscribe x"),
        ("SUB x", "SUB x"),
        ("x" * 500, "x" * 100),
        ("a\tb\x0bc", "a b c"),
    ],
)
def test_an_unrecognized_message_gets_a_warning(line: str, shown: str) -> None:
    """L-8: never a reason to close."""
    assert conversation().read(line) == Say(f"warning Unrecognized message {shown}")


def test_an_answer_to_a_heartbeat_is_not_answered() -> None:
    """L-9."""
    assert conversation().read("pong 5") is None


def test_a_refusal_names_the_url() -> None:
    """L-10."""
    spoken = conversation()
    asked = spoken.read(f"sub {DOCUMENT}")
    assert isinstance(asked, Subscribe)
    assert spoken.refuse(asked) == f"err {DOCUMENT} forbidden"
    assert spoken.publish(notification("/alice/x.ttl")) == []


def test_a_topic_that_may_no_longer_be_read_ends_with_all_its_urls() -> None:
    """L-10."""
    spoken = conversation(max_urls=2)
    accepted(spoken, DOCUMENT)
    accepted(spoken, "/alice/x.ttl")
    topic = ResourcePath("/alice/x.ttl")
    assert spoken.end(topic) == [f"err {DOCUMENT} forbidden", "err /alice/x.ttl forbidden"]
    assert spoken.end(topic) == []
    assert spoken.publish(notification("/alice/x.ttl")) == []
    accepted(spoken, "/alice/y")


def test_a_url_is_as_long_as_the_limit_at_most() -> None:
    """L-11."""
    url = f"{ORIGIN}/alice/".ljust(MAX_URL_CHARACTERS, "x")
    accepted(conversation(), url)
    assert conversation().read(f"sub {url}x") == Say("error: URL too long")


def test_a_socket_has_as_many_subscriptions_as_the_limit_at_most() -> None:
    """L-11."""
    spoken = conversation(max_urls=2)
    accepted(spoken, "/alice/1")
    accepted(spoken, "/alice/2")
    assert spoken.read("sub /alice/3") == Say("error: Subscription limit exceeded")
    spoken.read("unsub /alice/1")
    accepted(spoken, "/alice/3")


def test_a_credential_belongs_to_the_next_subscription_alone() -> None:
    spoken = conversation()
    assert spoken.read("auth DPoP token") is None
    assert spoken.read("dpop proof") is None
    first, second = spoken.read(f"sub {ORIGIN}/a"), spoken.read(f"sub {ORIGIN}/b")
    assert isinstance(first, Subscribe)
    assert first.credential == LineCredential("DPoP token", "proof")
    assert isinstance(second, Subscribe)
    assert second.credential is None


def test_a_subscription_that_is_refused_takes_its_credential_along() -> None:
    spoken = conversation()
    spoken.read("auth Bearer token")
    assert isinstance(spoken.read("sub http://elsewhere.example/"), Say)
    asked = spoken.read(f"sub {ORIGIN}/a")
    assert isinstance(asked, Subscribe)
    assert asked.credential is None


def test_a_proof_without_a_token_is_not_a_credential() -> None:
    spoken = conversation()
    spoken.read("dpop proof")
    asked = spoken.read(f"sub {ORIGIN}/a")
    assert isinstance(asked, Subscribe)
    assert asked.credential is None


def test_a_token_may_come_without_a_proof_and_replaced() -> None:
    spoken = conversation()
    spoken.read("auth Bearer first")
    spoken.read("auth Bearer second")
    spoken.read(f"unsub {ORIGIN}/a")
    asked = spoken.read(f"sub {ORIGIN}/a")
    assert isinstance(asked, Subscribe)
    assert asked.credential == LineCredential("Bearer second", None)
