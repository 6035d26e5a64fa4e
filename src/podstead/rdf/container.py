"""The statements about a container and its members that the server manages (C-23 to C-25).

The server manages containment, types, times and sizes; clients manage everything else in the
description of a container. A client that reads a container, changes a triple of its own and sends
everything back repeats the server's statements, of which some may no longer be true. They are
ignored, except that containment of a resource that never existed there is refused (C-13).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from podstead.core import vocab
from podstead.core.errors import Conflict
from podstead.rdf.graph import Graph
from podstead.rdf.terms import Iri, Literal, Object, Triple

_TYPE: Final = Iri(vocab.RDF_TYPE)
_CONTAINS: Final = Iri(vocab.LDP_CONTAINS)
_MODIFIED: Final = Iri(vocab.DCTERMS_MODIFIED)
_MTIME: Final = Iri(vocab.STAT_MTIME)
_SIZE: Final = Iri(vocab.STAT_SIZE)
_DATE_TIME: Final = Iri(vocab.XSD_DATE_TIME)
_INTEGER: Final = Iri(vocab.XSD_INTEGER)
_RDF_SOURCE: Final = Iri(vocab.LDP_RDF_SOURCE)
_STORAGE: Final = Iri(vocab.PIM_STORAGE_CLASS)

CONTAINER_TYPES: Final = (vocab.LDP_CONTAINER, vocab.LDP_BASIC_CONTAINER, vocab.LDP_RESOURCE)
"""The classes of every container, the most specific first."""

# A direct member has one more segment, and neither a query nor a fragment.
_MEMBER_NAME: Final = re.compile(r"[^/?#]+/?\Z")


class NotContained(Conflict):
    """A description states that a container contains what it does not."""

    def __init__(self, url: str | None = None) -> None:
        what = "something that is" if url is None else f"<{url}>, which is"
        super().__init__(
            f"The content states that a container contains {what} not in it. Only the server makes "
            "such statements: create the member instead, or leave them out"
        )


@dataclass(frozen=True, slots=True)
class ListedMember:
    """What a listing states about a direct member of a container (C-24).

    ``name`` is the last segment of the member's canonical path, percent-encoded, with the slash of
    a container. ``media_type`` has no parameters; it and ``size_bytes`` are ignored for containers.
    ``modified_ms`` is the time of the member's Last-Modified, in Unix milliseconds.
    """

    name: str
    is_container: bool
    media_type: str
    size_bytes: int
    modified_ms: int


@lru_cache(maxsize=4096)
def date_time(unix_s: int) -> str:
    """Unix time in seconds as an xsd:dateTime in UTC, with the resolution of an HTTP date."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat()[:-6] + "Z"


def container_statements(container_url: str, *, is_storage: bool, modified_ms: int) -> Graph:
    """What the server states about a container itself (C-23, C-25)."""
    container = Iri(container_url)
    types = [Iri(type_) for type_ in CONTAINER_TYPES]
    if is_storage:
        types.insert(0, _STORAGE)
    return Graph(
        [
            *((container, _TYPE, type_) for type_ in types),
            *_time_statements(container, modified_ms),
        ]
    )


def member_statements(container_url: str, members: Iterable[ListedMember]) -> Graph:
    """What the server states about members of a container (C-23, C-24)."""
    container = Iri(container_url)
    triples: list[Triple] = []
    for member in members:
        iri = Iri(container_url + member.name)
        triples.append((container, _CONTAINS, iri))
        triples += ((iri, _TYPE, Iri(type_)) for type_ in member_types(member))
        triples += _time_statements(iri, member.modified_ms)
        if not member.is_container:
            triples.append((iri, _SIZE, Literal(str(member.size_bytes), datatype=_INTEGER)))
    return Graph(triples)


def member_types(member: ListedMember) -> tuple[str, ...]:
    """The classes of a member: those of a container, or the class of its media type."""
    if member.is_container:
        return CONTAINER_TYPES
    return (vocab.media_type_class(member.media_type), vocab.LDP_RESOURCE)


def _time_statements(subject: Iri, modified_ms: int) -> tuple[Triple, Triple]:
    modified_s = modified_ms // 1000
    return (
        (subject, _MODIFIED, Literal(date_time(modified_s), datatype=_DATE_TIME)),
        (subject, _MTIME, Literal(str(modified_s), datatype=_INTEGER)),
    )


def server_managed(graph: Graph, *, container_url: str) -> Graph:
    """The server-managed triples in a description, about the container and its direct members."""
    container = Iri(container_url)
    return Graph(
        triple
        for triple in graph
        if (triple[0] == container or _is_member(triple[0], container_url))
        and _is_managed(triple[1], triple[2])
    )


def own_triples(graph: Graph, *, container_url: str) -> Graph:
    """The triples in a description that are not server-managed."""
    return graph - server_managed(graph, container_url=container_url)


def claimed_members(managed: Graph, *, container_url: str) -> frozenset[str]:
    """The names of the members that the server-managed triples in a description state (C-13).
    Raises Conflict for containment of, or in, anything that can be no direct member."""
    names = set()
    for subject, predicate, object_ in managed:
        if predicate != _CONTAINS:
            continue
        if subject != Iri(container_url) or not _is_member(object_, container_url):
            raise NotContained
        names.add(object_.value.removeprefix(container_url))
    return frozenset(names)


def _is_managed(predicate: Iri, object_: Object) -> bool:
    if predicate in (_CONTAINS, _MODIFIED) or predicate.value.startswith(vocab.STAT):
        return True
    return (
        predicate == _TYPE
        and isinstance(object_, Iri)
        and (object_ == _STORAGE or object_.value.startswith((vocab.LDP, vocab.MEDIA_TYPES)))
    )


def _is_member(term: Object, container_url: str) -> bool:
    return (
        isinstance(term, Iri)
        and term.value.startswith(container_url)
        and _MEMBER_NAME.match(term.value, len(container_url)) is not None
    )
