"""What is stored, and when is a response correct?

The subjects of the read cases are a document and a container. Each can store itself on a site and
check a response. The oracles are not our code: exact bytes, rdflib for graphs, and for listings the
set of members that were stored, read by pyoxigraph because rdflib is too slow for thousands.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final, Protocol

from pyoxigraph import NamedNode, RdfFormat, parse
from rdflib import Graph
from rdflib.compare import isomorphic

from bench.messages import JSON_LD, OCTETS, TURTLE, Answer, WrongAnswer, sequence_text
from bench.site import Site, Stored

LDP_CONTAINS: Final = NamedNode("http://www.w3.org/ns/ldp#contains")
FORMATS: Final = {JSON_LD: RdfFormat.JSON_LD, TURTLE: RdfFormat.TURTLE}
RDFLIB_FORMATS: Final = {JSON_LD: "json-ld", TURTLE: "turtle"}


class Subject(Protocol):
    """Something that can be read; `path` is below the pod."""

    @property
    def path(self) -> str: ...

    def furnish(self, site: Site) -> None:
        """Store it."""

    def judge(self, site: Site, answer: Answer, media_type: str) -> None:
        """Do nothing when this is the right answer in this media type, else raise WrongAnswer."""


@dataclass(frozen=True, slots=True)
class Document:
    """A resource that is not a container."""

    path: str
    media_type: str
    body: bytes

    def furnish(self, site: Site) -> None:
        """Store it as it is."""
        site.store([Stored(self.path, self.media_type, self.body)])

    def judge(self, site: Site, answer: Answer, media_type: str) -> None:
        """The exact bytes in the stored type, the same graph in another.

        Raises:
            WrongAnswer: anything else.
        """
        _require_type(answer, media_type)
        if media_type == self.media_type:
            if answer.body != self.body:
                raise WrongAnswer(f"{self.path}: other bytes than stored")
            return
        base = site.url(self.path)
        stored = _graph(self.body, self.media_type, base)
        if not isomorphic(_graph(answer.body, media_type, base), stored):
            raise WrongAnswer(f"{self.path}: the {media_type} is not the graph stored")


@dataclass(frozen=True, slots=True)
class Container:
    """A container of `size` small JSON-LD documents and nothing else; `path` ends in a slash."""

    path: str
    size: int

    def member(self, number: int) -> Stored:
        """Return the document with this number."""
        text = sequence_text(number)
        return Stored(f"{self.path}m-{text}.jsonld", JSON_LD, card(text).encode())

    def furnish(self, site: Site) -> None:
        """Store all members."""
        site.store(self.member(number) for number in range(self.size))

    def judge(self, site: Site, answer: Answer, media_type: str) -> None:
        """Exactly the members stored.

        Raises:
            WrongAnswer: a member is missing or there is one too many.
        """
        _require_type(answer, media_type)
        wanted = {site.url(self.member(number).path) for number in range(self.size)}
        seen = listed(answer, site.url(self.path))
        if seen != wanted:
            raise WrongAnswer(
                f"{self.path}: {len(wanted - seen)} members missing, {len(seen - wanted)} too many"
            )


def listed(answer: Answer, container_url: str) -> set[str]:
    """Return the URLs of the members that a container's representation lists.

    Raises:
        WrongAnswer: it is not RDF of its own media type.
    """
    try:
        quads = parse(answer.body, format=FORMATS[answer.media_type], base_iri=container_url)
        return {
            quad.object.value
            for quad in quads
            if quad.subject == NamedNode(container_url)
            and quad.predicate == LDP_CONTAINS
            and isinstance(quad.object, NamedNode)
        }
    except (SyntaxError, KeyError) as cause:
        raise WrongAnswer(f"unreadable container listing: {cause}") from cause


def card(mark: str) -> str:
    """Return a small JSON-LD document, a contact card, that differs by `mark` only.

    Flat and with its context inline, so that each server can convert it without the network.
    """
    document = {
        "@context": {
            "foaf": "http://xmlns.com/foaf/0.1/",
            "schema": "https://schema.org/",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
            "knows": {"@id": "http://xmlns.com/foaf/0.1/knows", "@type": "@id"},
            "homepage": {"@id": "http://xmlns.com/foaf/0.1/homepage", "@type": "@id"},
        },
        "@id": "#me",
        "@type": ["foaf:Person", "schema:Person"],
        "foaf:name": "Alice Example",
        "foaf:nick": mark,
        "foaf:age": 42,
        "schema:birthDate": {"@value": "1984-02-29", "@type": "xsd:date"},
        "schema:description": {"@value": "Une carte de visite", "@language": "fr"},
        "homepage": "https://alice.example/",
        "knows": [f"https://friend-{number}.example/profile/card#me" for number in range(5)],
    }
    return json.dumps(document, indent=1)


def octets(size_bytes: int) -> bytes:
    """Return bytes that do not compress and are the same in every run."""
    blocks = (hashlib.sha256(b"%d" % number).digest() for number in range(size_bytes // 32))
    return b"".join(blocks)


def _require_type(answer: Answer, media_type: str) -> None:
    if answer.media_type != media_type:
        raise WrongAnswer(f"Content-Type {answer.media_type or 'missing'} instead of {media_type}")


def _graph(body: bytes, media_type: str, base: str) -> Graph:
    try:
        return Graph().parse(data=body, format=RDFLIB_FORMATS[media_type], publicID=base)
    except Exception as cause:  # rdflib's parsers raise whatever their parts raise
        raise WrongAnswer(f"unreadable {media_type}: {cause}") from cause


PUBLIC_CARD: Final = Document("public/card.jsonld", JSON_LD, card(sequence_text(0)).encode())
PRIVATE_CARD: Final = Document("private/card.jsonld", JSON_LD, card(sequence_text(0)).encode())
PROVEN_CARD: Final = Document("private/proven.jsonld", JSON_LD, card(sequence_text(0)).encode())
CERTIFIED_CARD: Final = Document(
    "private/certified.jsonld", JSON_LD, card(sequence_text(0)).encode()
)
SIGNED_CARD: Final = Document("private/signed.jsonld", JSON_LD, card(sequence_text(0)).encode())
MEBIBYTE: Final = Document("public/octets.bin", OCTETS, octets(1_048_576))
HUNDRED: Final = Container("public/hundred/", 100)
