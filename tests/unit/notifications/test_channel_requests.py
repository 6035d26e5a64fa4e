"""Requests for channels: every spelling in use is understood, everything else is refused."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

import pytest
import rdflib
from pyld import jsonld  # type: ignore[import-untyped]
from rdflib.compare import isomorphic

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.errors import Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.notifications.channel_documents import (
    MAX_LIFETIME_MS,
    MAX_STATE_CHARACTERS,
    ChannelRequest,
    DescribedChannel,
    DescriptionDocument,
    channel_description,
    read_channel_request,
    service_description,
    services_json,
    services_of_storage,
)
from podstead.notifications.channel_types import (
    EVENT_SOURCE,
    STREAMING_HTTP,
    WEB_SOCKET,
    ChannelFeature,
    ChannelType,
    stream_of_resource,
)
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.graph import Graph

BASE = "https://pod.example"
TOPIC = f"{BASE}/alice/notes.ttl"
CONTEXTS = (
    "https://www.w3.org/ns/solid/notification/v1",
    "https://www.w3.org/ns/solid/notifications-context/v1",
)
NOTIFY = "http://www.w3.org/ns/solid/notifications#"
WEBHOOK = ChannelType("WebhookChannel2023", is_pushed=True)
TYPES = (WEB_SOCKET, EVENT_SOURCE, STREAMING_HTTP, WEBHOOK)
HOOK = "https://hook.example/1"


def read(
    sent: object, *, expected: ChannelType = WEB_SOCKET, base_url: str = BASE
) -> ChannelRequest:
    """Read a request in JSON-LD."""
    content = json.dumps(sent).encode()
    document = parse(
        content, "application/ld+json", base_iri=f"{BASE}/x", contexts=bundled_contexts()
    )
    return read_channel_request(document.graph, expected=expected, base_url=base_url)


def request(**members: Any) -> dict[str, Any]:  # noqa: ANN401 - members of any kind
    """A request for a WebSocket, with other members than the least."""
    return {
        "@context": [CONTEXTS[0]],
        "type": "WebSocketChannel2023",
        "topic": TOPIC,
        **members,
    }


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    "spelling",
    [
        "WebSocketChannel2023",
        "notify:WebSocketChannel2023",
        f"{NOTIFY}WebSocketChannel2023",
        "http://www.w3.org/ns/solid/notification#WebSocketChannel2023",
    ],
)
def test_the_type_is_understood_in_every_spelling_in_use(context: str, spelling: str) -> None:
    """N-6, N-7."""
    asked = read(request(**{"@context": context, "type": spelling}))
    assert asked == ChannelRequest(WEB_SOCKET, ResourcePath("/alice/notes.ttl"))


@pytest.mark.parametrize("expected", TYPES[:3])
def test_each_service_takes_its_own_type(expected: ChannelType) -> None:
    assert read(request(type=expected.name), expected=expected).channel_type is expected
    other = next(each for each in TYPES if each is not expected)
    with pytest.raises(Unprocessable, match=expected.name):
        read(request(type=other.name), expected=expected)


def test_a_request_in_turtle_says_the_same() -> None:
    """N-4: what @solid-notifications/subscription sends."""
    turtle = f"_:n3-0 a <{NOTIFY}WebSocketChannel2023>; <{NOTIFY}topic> <{TOPIC}> ."
    graph = parse(turtle.encode(), "text/turtle", base_iri=f"{BASE}/x").graph
    asked = read_channel_request(graph, expected=WEB_SOCKET, base_url=BASE)
    assert asked == read(request())


def test_features_are_read() -> None:
    """N-8."""
    asked = read(
        request(
            startAt="2023-01-01T00:00:00Z",
            endAt="2023-01-02T00:00:00Z",
            rate="PT10s",
            state="opaque-state",
            accept="text/turtle",
        )
    )
    assert (asked.start_ms, asked.end_ms) == (1_672_531_200_000, 1_672_617_600_000)
    assert (asked.rate_ms, asked.state, asked.media_type) == (10_000, "opaque-state", "text/turtle")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("application/ld+json", "application/ld+json"),
        ("*/*", "application/ld+json"),
        ("text/turtle, application/ld+json;q=0.5", "text/turtle"),
    ],
)
def test_the_form_of_messages_is_negotiated(accept: str, chosen: str) -> None:
    """N-15: the value is that of an Accept header."""
    assert read(request(accept=accept)).media_type == chosen


def test_a_webhook_says_where_to_send_to() -> None:
    """N-8, N-21."""
    asked = read(request(type="WebhookChannel2023", sendTo=HOOK), expected=WEBHOOK)
    assert asked.send_to == HOOK


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ({}, "one channel"),
        ({"type": "WebSocketChannel2023", "topic": TOPIC}, "one channel"),  # no context
        ([request(), request()], "one channel"),
        (request(type=[]), "type"),
        (request(type=["WebSocketChannel2023", "WebhookChannel2023"]), "type"),
        (request(type="LDNChannel2023"), "type"),
        (request(type=f"{NOTIFY}websocketchannel2023"), "type"),
        (request(topic=[]), "topic"),
        (request(topic=[TOPIC, f"{TOPIC}2"]), "topic"),
        (request(topic={"@value": TOPIC}), "topic"),
        (request(topic="https://elsewhere.example/x"), "topic"),
        (request(topic=f"{BASE}.evil.example/x"), "topic"),
        (request(topic=f"{TOPIC}#me"), "topic"),
        (request(topic=f"{TOPIC}?x=1#me"), "topic"),
        (request(topic=f"{TOPIC}#me?x=1"), "topic"),
        (request(topic="https://elsewhere.example/x?x=1"), "topic"),
        (request(topic=f"{BASE}/a//b"), "topic"),
        (request(sendTo=HOOK), "sendTo"),
        (request(receiveFrom="https://x.example/"), "receiveFrom"),
        (request(**{f"{NOTIFY}filter": "x"}), "filter"),
        (request(startAt="soon"), "startAt"),
        (request(endAt=["2023-01-01T00:00:00Z", "2023-01-02T00:00:00Z"]), "endAt"),
        (request(rate="10s"), "rate"),
        (request(rate="P15D"), "rate"),
        (request(rate={"@id": TOPIC}), "rate"),
        (request(state=["a", "b"]), "state"),
        (request(state="x" * (MAX_STATE_CHARACTERS + 1)), "state"),
        (request(accept="text/html"), "accept"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(sent: object, named: str) -> None:
    """N-5: missing, repeated, wrong and further properties."""
    with pytest.raises(Unprocessable, match=named):
        read(sent)


@pytest.mark.parametrize("send_to", [[], [HOOK, f"{HOOK}2"], {"@value": HOOK}])
def test_a_webhook_has_one_receiver(send_to: object) -> None:
    with pytest.raises(Unprocessable, match="sendTo"):
        read(request(type="WebhookChannel2023", sendTo=send_to), expected=WEBHOOK)


def test_the_longest_state_is_taken() -> None:
    assert read(request(state="x" * MAX_STATE_CHARACTERS)).state == "x" * MAX_STATE_CHARACTERS


@pytest.mark.parametrize(
    "topic", ["HTTPS://POD.example/alice/notes.ttl", f"{BASE}:443/alice/notes.ttl"]
)
def test_a_topic_has_one_spelling_inside(topic: str) -> None:
    assert read(request(topic=topic)).topic == "/alice/notes.ttl"


def test_a_channel_ends_after_two_weeks_at_the_latest() -> None:
    """N-10."""
    plain = read(request())
    assert plain.within(now_ms=1000).end_ms == 1000 + MAX_LIFETIME_MS
    late = read(request(endAt="2500-01-01T00:00:00Z"))
    assert late.within(now_ms=1000).end_ms == 1000 + MAX_LIFETIME_MS
    early = read(request(endAt="1970-01-02T00:00:00Z"))
    assert early.within(now_ms=1000).end_ms == 86_400_000


@pytest.mark.parametrize(
    "members",
    [
        {"endAt": "1970-01-01T00:00:01Z"},
        {"endAt": "1970-01-01T01:00:00Z", "startAt": "1970-01-01T01:00:00Z"},
        {"startAt": "2500-01-01T00:00:00Z"},
    ],
)
def test_a_channel_that_would_end_before_it_begins_is_refused(members: dict[str, str]) -> None:
    with pytest.raises(Unprocessable, match="would end before it begins"):
        read(request(**members)).within(now_ms=1000)


# --- channel_types -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:3000/",
        "http://localhost:3000/alice/notes/",
        "http://localhost:3000/alice/notes/a%20b.ttl",
        "http://localhost:3000/alice/a,b;c=(d)@e/.acl",
        "https://pod.example/" + "long/" * 200 + "name",
    ],
)
def test_the_path_of_a_stream_ends_in_one_segment_that_decodes_to_the_url(url: str) -> None:
    """N-22"""
    for _ in range(2):
        stream = stream_of_resource(url)
        segment = stream.removeprefix(STREAMING_HTTP.service)
        assert "/" not in segment
        assert unquote(segment) == url


# --- descriptions ------------------------------------------------------------------------------
#
# Descriptions in JSON-LD and in RDF say the same; pyld and rdflib are the judges (N-2, N-3).


STORAGE = f"{BASE}/alice/"
NOTIFY_TERMS = rdflib.Namespace("http://www.w3.org/ns/solid/notifications#")


def by_rdflib(graph: Graph) -> rdflib.Graph:
    """The graph as it is sent, read by another library."""
    return rdflib.Graph().parse(data=serialize(graph, "text/turtle"), format="turtle")


def by_pyld(document: dict[str, object]) -> rdflib.Graph:
    """The triples of a JSON-LD document, with the bundled context."""
    content = (files("podstead.rdf") / "contexts/solid-notifications-v1.jsonld").read_bytes()
    context = json.loads(content)["@context"]
    n_quads = jsonld.to_rdf({**document, "@context": context}, {"format": "application/n-quads"})
    return rdflib.Graph().parse(data=n_quads, format="nt")


def assert_same(description: DescriptionDocument) -> rdflib.Graph:
    """That both forms say the same; what they say."""
    graph = by_rdflib(description.graph)
    assert isomorphic(graph, by_pyld(description.json))
    return graph


CHANNELS = [
    DescribedChannel(
        url=f"{BASE}/.notifications/WebSocketChannel2023/1",
        channel_type=WEB_SOCKET,
        topic_url=f"{BASE}/alice/x",
        end_ms=1_672_531_200_000,
        media_type="application/ld+json",
        receive_from="wss://pod.example/.notifications/WebSocketChannel2023/1",
    ),
    DescribedChannel(
        url=f"{BASE}/.notifications/WebhookChannel2023/1",
        channel_type=WEBHOOK,
        topic_url=f"{BASE}/alice/x",
        end_ms=1_672_531_200_000,
        media_type="text/turtle",
        start_ms=1,
        rate_ms=1500,
        state="opaque",
        send_to="https://hook.example/",
        sender=f"{BASE}/.notifications/sender#it",
    ),
]


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_channel_is_described_alike_in_both_forms(channel: DescribedChannel) -> None:
    """N-9."""
    graph = assert_same(channel_description(channel))
    url = rdflib.URIRef(channel.url)
    assert graph.value(url, rdflib.RDF.type) == NOTIFY_TERMS[channel.channel_type.name]
    assert graph.value(url, NOTIFY_TERMS.topic) == rdflib.URIRef(channel.topic_url)
    for name, told in [("receiveFrom", channel.receive_from), ("sender", channel.sender)]:
        assert graph.value(url, NOTIFY_TERMS[name]) == (rdflib.URIRef(told) if told else None)
    assert (graph.value(url, NOTIFY_TERMS.rate) is None) is (channel.rate_ms is None)


@pytest.mark.parametrize("channel_type", TYPES)
def test_a_service_is_described_alike_in_both_forms(channel_type: ChannelType) -> None:
    """N-4: id, channelType and every feature."""
    description = service_description(channel_type, base_url=BASE)
    graph = assert_same(description)
    service = rdflib.URIRef(f"{BASE}/.notifications/{channel_type.name}/")
    assert graph.value(service, NOTIFY_TERMS.channelType) == NOTIFY_TERMS[channel_type.name]
    assert set(graph.objects(service, NOTIFY_TERMS.feature)) == {
        NOTIFY_TERMS[each.value] for each in ChannelFeature
    }
    assert description.json["id"] == str(service)


def test_types_and_features_are_the_same_without_the_context() -> None:
    """N-3: every name is a whole IRI already."""
    for member in services_json(TYPES, base_url=BASE):
        features = member["feature"]
        assert isinstance(features, list)
        for name in [member["channelType"], *features]:
            assert str(name).startswith(str(NOTIFY_TERMS))


def test_a_storage_leads_to_its_services() -> None:
    """N-2: as @solid-notifications/discovery looks for them."""
    graph = by_rdflib(services_of_storage(TYPES, root_url=STORAGE, base_url=BASE))
    services = set(graph.objects(rdflib.URIRef(STORAGE), NOTIFY_TERMS.subscription))
    assert {graph.value(each, NOTIFY_TERMS.channelType) for each in services} == {
        NOTIFY_TERMS[each.name] for each in TYPES
    }
    document: dict[str, object] = {
        "id": STORAGE,
        "subscription": services_json(TYPES, base_url=BASE),
    }
    assert isomorphic(graph, by_pyld(document))
