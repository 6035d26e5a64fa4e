"""Reads requests for channels (N-5, N-7, N-8, N-10), and describes channels and subscription
services.

A request describes one channel: a resource with a type, a topic and features, each at most once,
and nothing else. Pure: callers pass the time and the rules of this server, and check whether the
client may read the topic.

A description is RDF, and JSON-LD that reads as plain JSON. The JSON-LD is compacted with the
context of the protocol, so that clients that do not process RDF find its members by name. Channel
types and features are full IRIs, which mean the same to clients that expand the document and to
those that do not (N-3). The graph has the same content (N-2).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from podstead.core import vocab
from podstead.core.date_times import read_time, write_time
from podstead.core.errors import Unprocessable
from podstead.core.identifiers import ResourcePath, canonical_url
from podstead.core.media_types import JSON_LD, TURTLE, choose
from podstead.notifications import channel_types
from podstead.rdf.graph import Description, Graph, Iri, Literal, Object, Triple

MESSAGE_TYPES: Final = (JSON_LD, TURTLE)
"""The media types of messages, beginning with the default (N-15)."""
MAX_LIFETIME_MS: Final = 14 * 24 * 3600 * 1000
"""The maximum lifetime of a channel (N-10), and the maximum of its rate."""
MAX_ANONYMOUS_LIFETIME_MS: Final = 24 * 3600 * 1000
"""The maximum lifetime of a channel of the public."""
MAX_STATE_CHARACTERS: Final = 1024

_BASIC: Final = (vocab.RDF_TYPE, vocab.NOTIFY_TOPIC)
_FEATURES: Final = (
    vocab.NOTIFY_START_AT,
    vocab.NOTIFY_END_AT,
    vocab.NOTIFY_STATE,
    vocab.NOTIFY_RATE,
    vocab.NOTIFY_ACCEPT,
)

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ChannelRequest:
    """A channel as requested; times and durations are in milliseconds.

    ``media_type`` is the media type of messages, one of :data:`MESSAGE_TYPES`. Only channels whose
    messages the server pushes have ``send_to``; whether the server may send anything there is not
    checked yet.
    """

    channel_type: channel_types.ChannelType
    topic: ResourcePath
    media_type: str = JSON_LD
    start_ms: int | None = None
    end_ms: int | None = None
    rate_ms: int | None = None
    state: str | None = None
    send_to: str | None = None

    def within(self, *, now_ms: int, max_lifetime_ms: int = MAX_LIFETIME_MS) -> "ChannelRequest":
        """The request with an end that is within the limit (N-10). Raises Unprocessable for one
        that ends before it begins."""
        latest_ms = now_ms + max_lifetime_ms
        end_ms = latest_ms if self.end_ms is None else min(self.end_ms, latest_ms)
        if end_ms <= max(now_ms, self.start_ms or 0):
            raise Unprocessable(
                "The channel would end before it begins: give another endAt or startAt; a channel "
                "lasts for two weeks at most, and for a day where nobody has authenticated"
            )
        return replace(self, end_ms=end_ms)


def read_channel_request(
    graph: Graph, *, expected: channel_types.ChannelType, base_url: str
) -> ChannelRequest:
    """Read a request to the service for channels of the ``expected`` type.

    Raises Unprocessable with a message about what is missing or wrong (N-5).
    """
    wanted = _wanted(graph)
    _check_type(wanted, expected)
    known = {*_BASIC, *_FEATURES, *((vocab.NOTIFY_SEND_TO,) if expected.is_pushed else ())}
    for predicate in wanted:
        if predicate.value not in known:
            raise Unprocessable(f"A channel of this type does not support <{predicate.value}>")
    topic = _one(wanted, vocab.NOTIFY_TOPIC, _iri)
    if topic is None:
        raise Unprocessable("The topic of the channel is missing: it must be the URL of a resource")
    send_to = _one(wanted, vocab.NOTIFY_SEND_TO, _iri)
    if expected.is_pushed and send_to is None:
        raise Unprocessable(
            "A channel of this type must have a sendTo: the URL to send messages to"
        )
    return ChannelRequest(
        channel_type=expected,
        topic=topic_path(topic, base_url=base_url),
        media_type=_one(wanted, vocab.NOTIFY_ACCEPT, _media_type) or JSON_LD,
        start_ms=_one(wanted, vocab.NOTIFY_START_AT, _time),
        end_ms=_one(wanted, vocab.NOTIFY_END_AT, _time),
        rate_ms=_one(wanted, vocab.NOTIFY_RATE, _rate),
        state=_one(wanted, vocab.NOTIFY_STATE, _state),
        send_to=send_to,
    )


def topic_path(topic: str, *, base_url: str) -> ResourcePath:
    """The path of a topic, with the query of a question. Raises Unprocessable for an IRI that is
    not of this server."""
    address, mark, query = topic.partition("?")
    url = canonical_url(address)
    if url is None or not url.startswith(f"{base_url}/") or "#" in query or not query.isascii():
        raise Unprocessable(f"The topic must be the URL of a resource at {base_url}/")
    return ResourcePath(url[len(base_url) :] + mark + query)


def _wanted(graph: Graph) -> Description:
    """The properties of the one resource that the graph describes."""
    subjects = graph.subjects()
    if len(subjects) != 1:
        raise Unprocessable(
            "The body must describe one channel; does it lack the JSON-LD context "
            "https://www.w3.org/ns/solid/notification/v1?"
        )
    return graph.about(subjects[0])


def _check_type(wanted: Description, expected: channel_types.ChannelType) -> None:
    types = [each for each in wanted.get(Iri(vocab.RDF_TYPE), ()) if isinstance(each, Iri)]
    if [channel_types.channel_type_name(each.value) for each in types] != [expected.name]:
        raise Unprocessable(f"The type of a channel from this service must be {expected.name}")


def _one(wanted: Description, predicate: str, read: Callable[[Object], _Value]) -> _Value | None:
    """The one value of a property, ``None`` if it has none."""
    values = wanted.get(Iri(predicate), ())
    name = predicate.rpartition("#")[2]
    if len(values) > 1:
        raise Unprocessable(f"A channel can have only one {name}")
    try:
        return read(values[0]) if values else None
    except ValueError as error:
        raise Unprocessable(f"The {name} of a channel must be {_EXPECTED[name]}") from error


_EXPECTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "topic": "an absolute URL",
        "sendTo": "an absolute URL",
        "startAt": "a date and time such as 2026-11-21T10:00:00Z",
        "endAt": "a date and time such as 2026-11-21T10:00:00Z",
        "rate": "a duration of at most two weeks, such as PT10S",
        "state": f"a string of at most {MAX_STATE_CHARACTERS} characters",
        "accept": f"one of {', '.join(MESSAGE_TYPES)}",
    }
)


def _iri(value: Object) -> str:
    if not isinstance(value, Iri):
        raise ValueError("No IRI")  # noqa: TRY004 - a value of another kind is an invalid value
    return value.value


def _text(value: Object) -> str:
    if not isinstance(value, Literal):
        raise ValueError("No literal")  # noqa: TRY004 - as above
    return value.value


def _time(value: Object) -> int:
    return read_time(_text(value))


def _rate(value: Object) -> int:
    rate_ms = channel_types.read_duration(_text(value))
    if rate_ms > MAX_LIFETIME_MS:
        raise ValueError("Too long")
    return rate_ms


def _state(value: Object) -> str:
    text = _text(value)
    if len(text) > MAX_STATE_CHARACTERS:
        raise ValueError("Too long")
    return text


def _media_type(value: Object) -> str:
    chosen = choose(_text(value), MESSAGE_TYPES)
    if chosen is None:
        raise ValueError("No such form")
    return chosen


Json = dict[str, object]
"""A JSON object."""

PREFIXES: Final[Mapping[str, str]] = MappingProxyType({"notify": vocab.NOTIFY})
DESCRIPTION_TERMS: Final[Mapping[str, object]] = MappingProxyType(
    {
        "id": "@id",
        "type": "@type",
        "subscription": {"@id": vocab.NOTIFY_SUBSCRIPTION, "@type": "@id"},
        "channelType": {"@id": vocab.NOTIFY_CHANNEL_TYPE, "@type": "@id"},
        "feature": {"@id": vocab.NOTIFY_FEATURE, "@type": "@id"},
    }
)
"""The part of the protocol's context that a description of services needs and contains."""


@dataclass(frozen=True, slots=True)
class DescriptionDocument:
    """A document in both forms, which have the same content."""

    graph: Graph
    json: Json


@dataclass(frozen=True, slots=True)
class DescribedChannel:
    """The description of a channel for those who have its URL; times are Unix milliseconds."""

    url: str
    channel_type: channel_types.ChannelType
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


def service_description(
    channel_type: channel_types.ChannelType, *, base_url: str
) -> DescriptionDocument:
    """The subscription service for channels of a type (NP, Subscription Service Data Model)."""
    return DescriptionDocument(
        Graph(_service_triples(channel_type, base_url)),
        {"@context": [vocab.NOTIFICATION_CONTEXTS[0]], **_service_json(channel_type, base_url)},
    )


def services_of_storage(
    types: Iterable[channel_types.ChannelType], *, root_url: str, base_url: str
) -> Graph:
    """The part of the description of a storage about its subscription services (N-2)."""
    types = tuple(types)
    storage = Iri(root_url)
    said: list[Triple] = [
        (storage, Iri(vocab.NOTIFY_SUBSCRIPTION), Iri(base_url + each.service)) for each in types
    ]
    for each in types:
        said += _service_triples(each, base_url)
    return Graph(said)


def services_json(types: Iterable[channel_types.ChannelType], *, base_url: str) -> list[Json]:
    """The same as JSON, for the member ``subscription``."""
    return [_service_json(each, base_url) for each in types]


def channel_description(channel: DescribedChannel) -> DescriptionDocument:
    """A channel (NP, Notification Channel Data Model; N-9)."""
    subject = Iri(channel.url)
    said: list[Triple] = [(subject, Iri(vocab.RDF_TYPE), Iri(channel.channel_type.iri))]
    json: Json = {
        "@context": [vocab.NOTIFICATION_CONTEXTS[0]],
        "id": channel.url,
        "type": channel.channel_type.iri,
    }
    for predicate, value in _properties(channel):
        said.append((subject, Iri(predicate), value))
        json[predicate.removeprefix(vocab.NOTIFY)] = value.value
    return DescriptionDocument(Graph(said), json)


def _properties(channel: DescribedChannel) -> Iterable[tuple[str, Iri | Literal]]:
    yield vocab.NOTIFY_TOPIC, Iri(channel.topic_url)
    for predicate, url in (
        (vocab.NOTIFY_RECEIVE_FROM, channel.receive_from),
        (vocab.NOTIFY_SEND_TO, channel.send_to),
        (vocab.NOTIFY_SENDER, channel.sender),
    ):
        if url is not None:
            yield predicate, Iri(url)
    for predicate, at_ms in (
        (vocab.NOTIFY_START_AT, channel.start_ms),
        (vocab.NOTIFY_END_AT, channel.end_ms),
    ):
        if at_ms is not None:
            yield predicate, Literal(write_time(at_ms), datatype=Iri(vocab.XSD_DATE_TIME))
    if channel.rate_ms is not None:
        yield (
            vocab.NOTIFY_RATE,
            Literal(
                channel_types.write_duration(channel.rate_ms), datatype=Iri(vocab.XSD_DURATION)
            ),
        )
    if channel.state is not None:
        yield vocab.NOTIFY_STATE, Literal(channel.state)
    yield vocab.NOTIFY_ACCEPT, Literal(channel.media_type)
    if channel.comment is not None:
        yield vocab.RDFS_COMMENT, Literal(channel.comment)


def _service_triples(channel_type: channel_types.ChannelType, base_url: str) -> list[Triple]:
    service = Iri(base_url + channel_type.service)
    offered: list[tuple[str, Object]] = [(vocab.NOTIFY_CHANNEL_TYPE, Iri(channel_type.iri))]
    offered += [
        (vocab.NOTIFY_FEATURE, Iri(feature.iri)) for feature in channel_types.ChannelFeature
    ]
    return [(service, Iri(predicate), value) for predicate, value in offered]


def _service_json(channel_type: channel_types.ChannelType, base_url: str) -> Json:
    return {
        "id": base_url + channel_type.service,
        "channelType": channel_type.iri,
        "feature": [feature.iri for feature in channel_types.ChannelFeature],
    }
