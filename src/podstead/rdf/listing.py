"""The representation of a container: what the server states about it, and its listing."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol

from podstead.core import media_types, vocab
from podstead.core.errors import Conflict
from podstead.rdf.codecs import Document, serialize
from podstead.rdf.errors import UnsupportedRdfType
from podstead.rdf.graph import EMPTY_GRAPH, Dataset, Graph, Iri, Literal, Object, Triple
from podstead.rdf.jsonld_contexts import Json, encode_json
from podstead.rdf.jsonld_writer import compose
from podstead.rdf.lexing import without_directions
from podstead.rdf.turtle_writer import TurtleWriter

# The statements about a container and its members that the server manages (C-23 to C-25).
#
# The server manages containment, types, times and sizes; clients manage everything else in the
# description of a container. A client that reads a container, changes a triple of its own and sends
# everything back repeats the server's statements, of which some may no longer be true. They are
# ignored, except that containment of a resource that never existed there is refused (C-13).

_TYPE: Final = Iri(vocab.RDF_TYPE)
_CONTAINS: Final = Iri(vocab.LDP_CONTAINS)
_MODIFIED: Final = Iri(vocab.DCTERMS_MODIFIED)
_MTIME: Final = Iri(vocab.STAT_MTIME)
_SIZE: Final = Iri(vocab.STAT_SIZE)
_DATE_TIME: Final = Iri(vocab.XSD_DATE_TIME)
_INTEGER: Final = Iri(vocab.XSD_INTEGER)
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


# Serializing the listing of a container page by page, in constant memory.
#
# The representation of a container (C-23 to C-25, C-30) consists of the server's statements about
# it and its members, and of its own triples. The text is generated directly, because building and
# serializing a graph of the members takes ten times as long.

_NAMES: Final = (
    vocab.LDP_CONTAINS,
    vocab.DCTERMS_MODIFIED,
    vocab.STAT_MTIME,
    vocab.STAT_SIZE,
    vocab.XSD_DATE_TIME,
    *CONTAINER_TYPES,
)
"""The IRIs in the statements about members, except the classes of their media types."""


class Listing(Protocol):
    """One container in one media type: ``head`` is everything except the members, and ``foot`` ends
    the document after the last page."""

    head: bytes
    foot: bytes

    def page(self, members: Iterable[ListedMember]) -> bytes:
        """Further members; may be called any number of times."""


def listing(
    container_url: str,
    media_type: str,
    *,
    is_storage: bool,
    modified_ms: int,
    own_triples: Graph,
) -> Listing:
    """Begin to serialize a container.

    ``modified_ms`` is the time of the container's Last-Modified (P-8). Raises UnsupportedRdfType
    for a type that is not in ``LISTING_TYPES``, and NotExpressible for own triples that RDF/XML
    cannot express.
    """
    begin = _LISTINGS.get(media_type)
    if begin is None:
        raise UnsupportedRdfType(media_type)
    statements = container_statements(container_url, is_storage=is_storage, modified_ms=modified_ms)
    if media_type != media_types.JSON_LD:
        own_triples = without_directions(Dataset(own_triples)).default
    return begin(container_url, statements | own_triples)


class _TurtleListing:
    foot = b""

    def __init__(self, container_url: str, statements: Graph) -> None:
        writer = TurtleWriter(statements, {}, base_iri=container_url)
        self._contains, self._modified, self._mtime, self._size, self._date_time, *types = (
            writer.name(iri) for iri in _NAMES
        )
        self._container_types = ", ".join(types)
        self._resource = types[-1]
        self.head = writer.text().encode()

    def page(self, members: Iterable[ListedMember]) -> bytes:
        return "".join([self._paragraph(member) for member in members]).encode()

    def _paragraph(self, member: ListedMember) -> str:
        # "a:b" would be read as an absolute IRI with the scheme "a" (RFC 3986 section 4.2).
        name = f"./{member.name}" if ":" in member.name else member.name
        modified_s = member.modified_ms // 1000
        if member.is_container:
            types, size = self._container_types, ""
        else:
            types = f"<{vocab.media_type_class(member.media_type)}>, {self._resource}"
            size = f" ;\n    {self._size} {member.size_bytes}"
        return (
            f"\n<> {self._contains} <{name}> .\n"
            f"<{name}> a {types} ;\n"
            f'    {self._modified} "{date_time(modified_s)}"^^{self._date_time} ;\n'
            f"    {self._mtime} {modified_s}{size} .\n"
        )


class _JsonLdListing:
    """The node of the container is the last one and ends with its members as nested nodes."""

    foot = b"\n]}]}\n"

    def __init__(self, container_url: str, statements: Graph) -> None:
        composition = compose(Dataset(statements), {}, names=_NAMES)
        self._contains, self._modified, self._mtime, self._size, self._date_time, *types = (
            encode_json(composition.names[iri]).decode() for iri in _NAMES
        )
        self._container_types = f"[{', '.join(types)}]"
        self._resource = types[-1]
        self._container_url = container_url
        self._separator = "\n"
        nodes = sorted(composition.nodes, key=lambda node: node.get("@id") == container_url)
        *others, container = [encode_json(node).decode() for node in nodes]
        context = encode_json(dict[str, Json](composition.context)).decode()
        before = "".join(f"\n{node}," for node in others)
        head = f'{{"@context": {context},\n"@graph": [{before}\n{container[:-1]},'
        self.head = f"{head}\n{self._contains}: [".encode()

    def page(self, members: Iterable[ListedMember]) -> bytes:
        text = ",\n".join([self._node(member) for member in members])
        if text == "":
            return b""
        text = self._separator + text
        self._separator = ",\n"
        return text.encode()

    def _node(self, member: ListedMember) -> str:
        modified_s = member.modified_ms // 1000
        if member.is_container:
            types, size = self._container_types, ""
        else:
            types = f'["{vocab.media_type_class(member.media_type)}", {self._resource}]'
            size = f", {self._size}: {member.size_bytes}"
        return (
            f'{{"@id": "{self._container_url}{member.name}", "@type": {types}, '
            f'{self._modified}: {{"@value": "{date_time(modified_s)}", '
            f'"@type": {self._date_time}}}, {self._mtime}: {modified_s}{size}}}'
        )


class _NTriplesListing:
    foot = b""

    def __init__(self, container_url: str, statements: Graph) -> None:
        self._container_url = container_url
        self.head = serialize(statements, media_types.N_TRIPLES)

    def page(self, members: Iterable[ListedMember]) -> bytes:
        statements = member_statements(self._container_url, members)
        return serialize(statements, media_types.N_TRIPLES)


class _XmlListing:
    """Each page is serialized as a document of its own, of which only the middle is sent."""

    def __init__(self, container_url: str, statements: Graph) -> None:
        self._container_url = container_url
        empty = _xml(EMPTY_GRAPH)
        self.foot = empty[empty.rindex(b"</") :]
        self._start = empty.removesuffix(self.foot)
        self.head = _xml(statements).removesuffix(self.foot)

    def page(self, members: Iterable[ListedMember]) -> bytes:
        page = _xml(member_statements(self._container_url, members))
        return page.removeprefix(self._start).removesuffix(self.foot)


def _xml(statements: Graph) -> bytes:
    return serialize(Document(Dataset(statements), _XML_PREFIXES), media_types.RDF_XML)


_XML_PREFIXES: Final = MappingProxyType(
    {"dcterms": vocab.DCTERMS, "ldp": vocab.LDP, "stat": vocab.STAT}
)
"""The same for every page, so that one head declares them for all pages."""

_LISTINGS: Final[Mapping[str, Callable[[str, Graph], Listing]]] = MappingProxyType(
    {
        media_types.TURTLE: _TurtleListing,
        media_types.JSON_LD: _JsonLdListing,
        media_types.N_TRIPLES: _NTriplesListing,
        # Documents without named graphs are the same in the following types.
        media_types.N_QUADS: _NTriplesListing,
        media_types.TRIG: _TurtleListing,
        media_types.N3: _TurtleListing,
        media_types.RDF_XML: _XmlListing,
    }
)
LISTING_TYPES: Final = tuple(_LISTINGS)
"""The media types in which containers are available, the default first (C-27)."""
