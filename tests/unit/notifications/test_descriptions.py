"""Descriptions in JSON-LD and in RDF say the same; pyld and rdflib are the judges (N-2, N-3)."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
import rdflib
from pyld import jsonld  # type: ignore[import-untyped]
from rdflib.compare import isomorphic

from podstead.notifications.channel_documents import (
    DescribedChannel,
    DescriptionDocument,
    channel_description,
    service_description,
    services_json,
    services_of_storage,
)
from podstead.notifications.channel_types import ChannelType, Feature
from podstead.rdf.codecs import serialize
from podstead.rdf.graph import Graph

BASE = "https://pod.example"
STORAGE = f"{BASE}/alice/"
NOTIFY = rdflib.Namespace("http://www.w3.org/ns/solid/notifications#")


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
        channel_type=ChannelType.WEB_SOCKET,
        topic_url=f"{BASE}/alice/x",
        end_ms=1_672_531_200_000,
        media_type="application/ld+json",
        receive_from="wss://pod.example/.notifications/WebSocketChannel2023/1",
    ),
    DescribedChannel(
        url=f"{BASE}/.notifications/WebhookChannel2023/1",
        channel_type=ChannelType.WEBHOOK,
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
    assert graph.value(url, rdflib.RDF.type) == NOTIFY[channel.channel_type.value]
    assert graph.value(url, NOTIFY.topic) == rdflib.URIRef(channel.topic_url)
    for name, told in [("receiveFrom", channel.receive_from), ("sender", channel.sender)]:
        assert graph.value(url, NOTIFY[name]) == (rdflib.URIRef(told) if told else None)
    assert (graph.value(url, NOTIFY.rate) is None) is (channel.rate_ms is None)


@pytest.mark.parametrize("channel_type", ChannelType)
def test_a_service_is_described_alike_in_both_forms(channel_type: ChannelType) -> None:
    """N-4: id, channelType and every feature."""
    description = service_description(channel_type, base_url=BASE)
    graph = assert_same(description)
    service = rdflib.URIRef(f"{BASE}/.notifications/{channel_type.value}/")
    assert graph.value(service, NOTIFY.channelType) == NOTIFY[channel_type.value]
    assert set(graph.objects(service, NOTIFY.feature)) == {NOTIFY[each.value] for each in Feature}
    assert description.json["id"] == str(service)


def test_types_and_features_are_the_same_without_the_context() -> None:
    """N-3: every name is a whole IRI already."""
    for member in services_json(ChannelType, base_url=BASE):
        features = member["feature"]
        assert isinstance(features, list)
        for name in [member["channelType"], *features]:
            assert str(name).startswith(str(NOTIFY))


def test_a_storage_leads_to_its_services() -> None:
    """N-2: as @solid-notifications/discovery looks for them."""
    graph = by_rdflib(services_of_storage(ChannelType, root_url=STORAGE, base_url=BASE))
    services = set(graph.objects(rdflib.URIRef(STORAGE), NOTIFY.subscription))
    assert {graph.value(each, NOTIFY.channelType) for each in services} == {
        NOTIFY[each.value] for each in ChannelType
    }
    document: dict[str, object] = {
        "id": STORAGE,
        "subscription": services_json(ChannelType, base_url=BASE),
    }
    assert isomorphic(graph, by_pyld(document))
