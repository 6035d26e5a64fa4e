"""Describes subscription services and channels in RDF, and in JSON-LD that reads as plain JSON.

The JSON-LD is compacted with the context of the protocol, so that clients that do not process RDF
find its members by name. Channel types and features are full IRIs, which mean the same to clients
that expand the document and to those that do not (N-3). The graph has the same content (N-2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from podstead.core.vocab import (
    NOTIFICATION_CONTEXTS,
    NOTIFY,
    NOTIFY_ACCEPT,
    NOTIFY_CHANNEL_TYPE,
    NOTIFY_END_AT,
    NOTIFY_FEATURE,
    NOTIFY_RATE,
    NOTIFY_RECEIVE_FROM,
    NOTIFY_SEND_TO,
    NOTIFY_SENDER,
    NOTIFY_START_AT,
    NOTIFY_STATE,
    NOTIFY_SUBSCRIPTION,
    NOTIFY_TOPIC,
    RDF_TYPE,
    RDFS_COMMENT,
    XSD_DATE_TIME,
    XSD_DURATION,
)
from podstead.notifications.channel_types import ChannelType, Feature
from podstead.notifications.times import write_duration, write_time
from podstead.rdf.graph import Graph, Iri, Literal, Object, Triple

Json = dict[str, object]
"""A JSON object."""

PREFIXES: Final[Mapping[str, str]] = MappingProxyType({"notify": NOTIFY})
DESCRIPTION_TERMS: Final[Mapping[str, object]] = MappingProxyType(
    {
        "id": "@id",
        "type": "@type",
        "subscription": {"@id": NOTIFY_SUBSCRIPTION, "@type": "@id"},
        "channelType": {"@id": NOTIFY_CHANNEL_TYPE, "@type": "@id"},
        "feature": {"@id": NOTIFY_FEATURE, "@type": "@id"},
    }
)
"""The part of the protocol's context that a description of services needs and contains."""


@dataclass(frozen=True, slots=True)
class Description:
    """A document in both forms, which have the same content."""

    graph: Graph
    json: Json


@dataclass(frozen=True, slots=True)
class DescribedChannel:
    """The description of a channel for those who have its URL; times are Unix milliseconds."""

    url: str
    channel_type: ChannelType
    topic_url: str
    end_ms: int
    media_type: str
    start_ms: int | None = None
    rate_ms: int | None = None
    state: str | None = None
    receive_from: str | None = None
    send_to: str | None = None
    sender: str | None = None
    comment: str | None = None
    """Further text, such as the reason why the server no longer sends anything."""


def service_description(channel_type: ChannelType, *, base_url: str) -> Description:
    """The subscription service for channels of a type (NP, Subscription Service Data Model)."""
    return Description(
        Graph(_service_triples(channel_type, base_url)),
        {"@context": [NOTIFICATION_CONTEXTS[0]], **_service_json(channel_type, base_url)},
    )


def services_of_storage(types: Iterable[ChannelType], *, root_url: str, base_url: str) -> Graph:
    """The part of the description of a storage about its subscription services (N-2)."""
    types = tuple(types)
    storage = Iri(root_url)
    said: list[Triple] = [
        (storage, Iri(NOTIFY_SUBSCRIPTION), Iri(base_url + each.service)) for each in types
    ]
    for each in types:
        said += _service_triples(each, base_url)
    return Graph(said)


def services_json(types: Iterable[ChannelType], *, base_url: str) -> list[Json]:
    """The same as JSON, for the member ``subscription``."""
    return [_service_json(each, base_url) for each in types]


def channel_description(channel: DescribedChannel) -> Description:
    """A channel (NP, Notification Channel Data Model; N-9)."""
    subject = Iri(channel.url)
    said: list[Triple] = [(subject, Iri(RDF_TYPE), Iri(channel.channel_type.iri))]
    json: Json = {
        "@context": [NOTIFICATION_CONTEXTS[0]],
        "id": channel.url,
        "type": channel.channel_type.iri,
    }
    for predicate, value in _properties(channel):
        said.append((subject, Iri(predicate), value))
        json[predicate.removeprefix(NOTIFY)] = value.value
    return Description(Graph(said), json)


def _properties(channel: DescribedChannel) -> Iterable[tuple[str, Iri | Literal]]:
    yield NOTIFY_TOPIC, Iri(channel.topic_url)
    for predicate, url in (
        (NOTIFY_RECEIVE_FROM, channel.receive_from),
        (NOTIFY_SEND_TO, channel.send_to),
        (NOTIFY_SENDER, channel.sender),
    ):
        if url is not None:
            yield predicate, Iri(url)
    for predicate, at_ms in ((NOTIFY_START_AT, channel.start_ms), (NOTIFY_END_AT, channel.end_ms)):
        if at_ms is not None:
            yield predicate, Literal(write_time(at_ms), datatype=Iri(XSD_DATE_TIME))
    if channel.rate_ms is not None:
        yield NOTIFY_RATE, Literal(write_duration(channel.rate_ms), datatype=Iri(XSD_DURATION))
    if channel.state is not None:
        yield NOTIFY_STATE, Literal(channel.state)
    yield NOTIFY_ACCEPT, Literal(channel.media_type)
    if channel.comment is not None:
        yield RDFS_COMMENT, Literal(channel.comment)


def _service_triples(channel_type: ChannelType, base_url: str) -> list[Triple]:
    service = Iri(base_url + channel_type.service)
    offered: list[tuple[str, Object]] = [(NOTIFY_CHANNEL_TYPE, Iri(channel_type.iri))]
    offered += [(NOTIFY_FEATURE, Iri(feature.iri)) for feature in Feature]
    return [(service, Iri(predicate), value) for predicate, value in offered]


def _service_json(channel_type: ChannelType, base_url: str) -> Json:
    return {
        "id": base_url + channel_type.service,
        "channelType": channel_type.iri,
        "feature": [feature.iri for feature in Feature],
    }
