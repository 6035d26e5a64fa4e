"""The lines of solid-0.1, both ways (L-2 to L-12)."""

from __future__ import annotations

import pytest

from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.features.legacy_notifications.protocol import (
    GREETING,
    MAX_URL_CHARACTERS,
    Conversation,
    Forget,
    LineCredential,
    SubprotocolOffer,
    Subscribe,
    TextReply,
    offer_of,
)
from podstead.features.legacy_notifications.socket import commits_alone
from podstead.notifications.messages import Activity, Notification
from podstead.storage.records import Version

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
    assert conversation().read(f"sub {url}") == TextReply(f"err {url} forbidden")


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
    assert conversation().read(line) == TextReply(f"warning Unrecognized message {shown}")


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
    assert conversation().read(f"sub {url}x") == TextReply("error: URL too long")


def test_a_socket_has_as_many_subscriptions_as_the_limit_at_most() -> None:
    """L-11."""
    spoken = conversation(max_urls=2)
    accepted(spoken, "/alice/1")
    accepted(spoken, "/alice/2")
    assert spoken.read("sub /alice/3") == TextReply("error: Subscription limit exceeded")
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
    assert isinstance(spoken.read("sub http://elsewhere.example/"), TextReply)
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


@pytest.mark.parametrize(
    ("workers", "database", "expected"),
    [
        (1, None, True),
        (2, None, False),
        (None, None, False),
        (1, "postgresql://db.example/podstead", False),
    ],
)
def test_only_the_one_worker_of_an_embedded_database_commits_alone(
    workers: int | None, database: str | None, *, expected: bool
) -> None:
    assert commits_alone(Settings(workers=workers, database=database)) == expected
