"""Parses and checks the request for a channel (N-5, N-7, N-8, N-10).

A request describes one channel: a resource with a type, a topic and features, each at most once,
and nothing else. Pure: callers pass the time and the rules of this server, and check whether the
client may read the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from podstead.core.errors import Unprocessable
from podstead.core.identifiers import ResourcePath, canonical_url
from podstead.core.media_types import JSON_LD, TURTLE, choose
from podstead.core.vocab import (
    NOTIFY_ACCEPT,
    NOTIFY_END_AT,
    NOTIFY_RATE,
    NOTIFY_SEND_TO,
    NOTIFY_START_AT,
    NOTIFY_STATE,
    NOTIFY_TOPIC,
    RDF_TYPE,
)
from podstead.notifications.channel_types import ChannelType, channel_type_of
from podstead.notifications.times import read_duration, read_time
from podstead.rdf.graph import Description, Graph, Iri, Literal, Object

MESSAGE_TYPES: Final = (JSON_LD, TURTLE)
"""The media types of messages, beginning with the default (N-15)."""
MAX_LIFETIME_MS: Final = 14 * 24 * 3600 * 1000
"""The maximum lifetime of a channel (N-10), and the maximum of its rate."""
MAX_ANONYMOUS_LIFETIME_MS: Final = 24 * 3600 * 1000
"""The maximum lifetime of a channel of the public."""
MAX_STATE_CHARACTERS: Final = 1024

_BASIC: Final = (RDF_TYPE, NOTIFY_TOPIC)
_FEATURES: Final = (NOTIFY_START_AT, NOTIFY_END_AT, NOTIFY_STATE, NOTIFY_RATE, NOTIFY_ACCEPT)

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ChannelRequest:
    """A channel as requested; times and durations are in milliseconds.

    ``media_type`` is the media type of messages, one of :data:`MESSAGE_TYPES`. Only channels whose
    messages the server pushes have ``send_to``; whether the server may send anything there is not
    checked yet.
    """

    channel_type: ChannelType
    topic: ResourcePath
    media_type: str = JSON_LD
    start_ms: int | None = None
    end_ms: int | None = None
    rate_ms: int | None = None
    state: str | None = None
    send_to: str | None = None

    def within(self, *, now_ms: int, max_lifetime_ms: int = MAX_LIFETIME_MS) -> ChannelRequest:
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


def read_channel_request(graph: Graph, *, expected: ChannelType, base_url: str) -> ChannelRequest:
    """Read a request to the service for channels of the ``expected`` type.

    Raises Unprocessable with a message about what is missing or wrong (N-5).
    """
    wanted = _wanted(graph)
    _check_type(wanted, expected)
    known = {*_BASIC, *_FEATURES, *((NOTIFY_SEND_TO,) if expected.is_pushed else ())}
    for predicate in wanted:
        if predicate.value not in known:
            raise Unprocessable(f"A channel of this type does not support <{predicate.value}>")
    topic = _one(wanted, NOTIFY_TOPIC, _iri)
    if topic is None:
        raise Unprocessable("The topic of the channel is missing: it must be the URL of a resource")
    send_to = _one(wanted, NOTIFY_SEND_TO, _iri)
    if expected.is_pushed and send_to is None:
        raise Unprocessable(
            "A channel of this type must have a sendTo: the URL to send messages to"
        )
    return ChannelRequest(
        channel_type=expected,
        topic=topic_path(topic, base_url=base_url),
        media_type=_one(wanted, NOTIFY_ACCEPT, _media_type) or JSON_LD,
        start_ms=_one(wanted, NOTIFY_START_AT, _time),
        end_ms=_one(wanted, NOTIFY_END_AT, _time),
        rate_ms=_one(wanted, NOTIFY_RATE, _rate),
        state=_one(wanted, NOTIFY_STATE, _state),
        send_to=send_to,
    )


def topic_path(topic: str, *, base_url: str) -> ResourcePath:
    """The path of a topic. Raises Unprocessable for an IRI that is not of this server."""
    url = canonical_url(topic)
    if url is None or not url.startswith(f"{base_url}/"):
        raise Unprocessable(f"The topic must be the URL of a resource at {base_url}/")
    return ResourcePath(url[len(base_url) :])


def _wanted(graph: Graph) -> Description:
    """The properties of the one resource that the graph describes."""
    subjects = graph.subjects()
    if len(subjects) != 1:
        raise Unprocessable(
            "The body must describe one channel; does it lack the JSON-LD context "
            "https://www.w3.org/ns/solid/notification/v1?"
        )
    return graph.about(subjects[0])


def _check_type(wanted: Description, expected: ChannelType) -> None:
    types = [each for each in wanted.get(Iri(RDF_TYPE), ()) if isinstance(each, Iri)]
    if [channel_type_of(each.value) for each in types] != [expected]:
        raise Unprocessable(f"The type of a channel from this service must be {expected.value}")


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
    rate_ms = read_duration(_text(value))
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
