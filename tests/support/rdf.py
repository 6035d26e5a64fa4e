"""What answers say, read by rdflib: the oracle that is not our parser."""

from __future__ import annotations

import warnings
from collections.abc import Set as AbstractSet

import rdflib
from rdflib.compare import to_canonical_graph
from rdflib.term import Node

from tests.support.asgi import Answer

TURTLE = "text/turtle"
JSON_LD = "application/ld+json"
N_TRIPLES = "application/n-triples"
N_QUADS = "application/n-quads"
TRIG = "application/trig"
N3 = "text/n3"
RDF_XML = "application/rdf+xml"

FORMATS = {
    TURTLE: "turtle",
    JSON_LD: "json-ld",
    N_TRIPLES: "nt",
    N_QUADS: "nquads",
    TRIG: "trig",
    N3: "n3",
    RDF_XML: "xml",
}
"""What rdflib calls the formats."""

Triples = AbstractSet[tuple[Node, Node, Node]]


def media_type(answer: Answer) -> str:
    """The Content-Type without parameters."""
    return (answer.header("content-type") or "").partition(";")[0]


def said(answer: Answer, url: str) -> Triples:
    """What an answer at a URL says in its default graph."""
    return triples(answer.body, media_type(answer), url)


def triples(content: str | bytes, content_type: str, url: str) -> Triples:
    """The default graph of a document at a URL, its blank nodes named by what they are."""
    return graphs(content, content_type, url).get(None, frozenset())


def graphs(content: str | bytes, content_type: str, url: str) -> dict[str | None, Triples]:
    """Every graph of a document at a URL, by its name; the default one under ``None``."""
    with warnings.catch_warnings():  # rdflib's Dataset uses what rdflib deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        dataset = rdflib.Dataset()
        dataset.parse(data=content, format=FORMATS[content_type], publicID=url)
        default = str(dataset.default_graph.identifier)
        found: dict[str | None, Triples] = {}
        for graph in dataset.graphs():
            name = str(graph.identifier)
            copy = rdflib.Graph()
            for triple in graph:
                copy.add(triple)
            found[None if name == default else name] = frozenset(to_canonical_graph(copy))
    return {name: content for name, content in found.items() if content}


def written(content: Triples, content_type: str) -> str:
    """Triples in a format, written by rdflib."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        dataset = rdflib.Dataset()
        for triple in content:
            dataset.default_graph.add(triple)
        whole = dataset if content_type in (N_QUADS, TRIG) else dataset.default_graph
        return whole.serialize(format=FORMATS[content_type])
