"""Discovering the types of notifications that a server offers. Pure.

A client looks for a description (Solid Notifications Protocol, Discovery: ``describedby`` or the
storage description), and in it for a subscription service. Older servers have no description;
headers refer directly to their streams and sockets (N-22, L-1).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from podstead.core import header_fields, vocab
from podstead.notifications import channel_types
from podstead.notifications.channel_types import channel_type_name
from podstead.outbound import errors, urls
from podstead.rdf.graph import Graph, Iri

_DESCRIPTIONS: Final = (vocab.SOLID_STORAGE_DESCRIPTION, "describedby")
_SIGNS_OF_SOLID: Final = frozenset({*_DESCRIPTIONS, "acl"})


class Protocol(Enum):
    """The supported protocols, best first; the values are the names that people know.

    The best one can resume after a lost connection without missing changes (N-23).
    """

    EVENT_SOURCE = channel_types.EVENT_SOURCE.name
    WEB_SOCKET = channel_types.WEB_SOCKET.name
    STREAMING_HTTP = channel_types.STREAMING_HTTP.name
    STREAM_OF_RESOURCE = f"{channel_types.STREAMING_HTTP.name} of the resource"
    SOLID_0_1 = "solid-0.1"


_OF_CHANNELS: Final = (Protocol.EVENT_SOURCE, Protocol.WEB_SOCKET, Protocol.STREAMING_HTTP)


@dataclass(frozen=True, slots=True)
class ChangeSource:
    """One way to receive changes of a resource.

    ``url`` is a subscription service for the first three protocols, otherwise the address of the
    stream or socket. ``takes_state`` means that a subscription can include the known state (N-14).
    """

    protocol: Protocol
    url: str
    takes_state: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveryLinks:
    """What the headers of a resource refer to."""

    is_solid: bool
    """Whether the headers indicate a Solid server."""
    descriptions: tuple[str, ...]
    ways: tuple[ChangeSource, ...]
    """The ways that need no description."""


def read_links(fields: Iterable[tuple[str, str]], *, url: str) -> DiscoveryLinks:
    """Parse the headers of the resource at ``url``; their names are in lower case."""
    by_name: dict[str, list[str]] = {}
    for name, value in fields:
        by_name.setdefault(name, []).append(value)
    targets: dict[str, list[str]] = {}
    for link in header_fields.parse_links(by_name.get("link", ())):
        for relation in () if link.anchored else link.relations:
            targets.setdefault(relation, []).extend(_absolute([link.target], url))
    sockets = _absolute(by_name.get("updates-via", ()), url)
    streams = targets.get(vocab.SOLID_UPDATES_VIA_STREAMING_HTTP, ())
    return DiscoveryLinks(
        is_solid=bool(sockets or streams) or not _SIGNS_OF_SOLID.isdisjoint(targets),
        descriptions=tuple(each for name in _DESCRIPTIONS for each in targets.get(name, ())),
        ways=(
            *(ChangeSource(Protocol.STREAM_OF_RESOURCE, each) for each in streams),
            *(ChangeSource(Protocol.SOLID_0_1, each) for each in sockets),
        ),
    )


def services_in(description: Graph) -> tuple[ChangeSource, ...]:
    """The subscription services in a description that this client supports."""
    return tuple(_services(description))


def preferred(ways: Iterable[ChangeSource]) -> ChangeSource | None:
    """The best way; ``None`` if there is none."""
    order = list(Protocol)
    return min(ways, key=lambda way: order.index(way.protocol), default=None)


def _services(description: Graph) -> Iterator[ChangeSource]:
    known = {each.value: each for each in _OF_CHANNELS}
    for subject in description.subjects(Iri(vocab.NOTIFY_CHANNEL_TYPE)):
        features = description.objects(subject, Iri(vocab.NOTIFY_FEATURE))
        for named in description.objects(subject, Iri(vocab.NOTIFY_CHANNEL_TYPE)):
            protocol = known.get(channel_type_name(named.value) or "")
            if protocol is not None and type(subject) is Iri:
                yield ChangeSource(protocol, subject.value, Iri(vocab.NOTIFY_STATE) in features)


def _absolute(references: Iterable[str], url: str) -> list[str]:
    """The valid references, resolved against ``url``."""
    absolute = []
    for reference in references:
        try:
            absolute.append(urls.resolve_reference(url, reference))
        except errors.Refused:
            continue
    return absolute
