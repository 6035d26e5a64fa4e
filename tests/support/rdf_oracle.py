"""A second RDF library as the judge: what does rdflib read, and is it the same graph?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import rdflib
from rdflib.compare import isomorphic, to_isomorphic

from podstead.core.media_types import (
    JSON_LD,
    N3,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    TRIG,
    TURTLE,
)
from podstead.rdf.graph import Dataset, Graph, Iri, Literal, Object, Subject

BASE = "http://example.org/folder/document"

FORMATS = {
    TURTLE: "turtle",
    JSON_LD: "json-ld",
    N_TRIPLES: "nt",
    N_QUADS: "nquads",
    TRIG: "trig",
    N3: "n3",
    RDF_XML: "xml",
}


def read(content: bytes | str, media_type: str, *, base_iri: str = BASE) -> rdflib.Graph:
    """What rdflib reads in a document with triples only."""
    graph = rdflib.Graph()
    with _own_deprecations():
        graph.parse(data=content, format=FORMATS[media_type], publicID=base_iri)
    return graph


def read_dataset(content: bytes | str, media_type: str) -> rdflib.Dataset:
    """What rdflib reads in a document with named graphs."""
    dataset = rdflib.Dataset()
    with _own_deprecations():
        dataset.parse(data=content, format=FORMATS[media_type], publicID=BASE)
    return dataset


@contextmanager
def literals_as_written() -> Iterator[None]:
    """In here ``"01"^^xsd:integer`` and ``"1"^^xsd:integer`` are, and stay, different."""
    before = rdflib.NORMALIZE_LITERALS
    rdflib.NORMALIZE_LITERALS = False
    try:
        yield
    finally:
        rdflib.NORMALIZE_LITERALS = before


@contextmanager
def _own_deprecations() -> Iterator[None]:
    """The parsers of rdflib use what rdflib deprecates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def assert_same(actual: Graph | rdflib.Graph, expected: Graph | rdflib.Graph) -> None:
    """Assert that two graphs are the same but for the labels of their blank nodes."""
    both_ours = isinstance(actual, Graph) and isinstance(expected, Graph)
    left, right = (
        _given(graph, interpreted=not both_ours) if isinstance(graph, Graph) else graph
        for graph in (actual, expected)
    )
    if not isomorphic(left, right):
        surplus = to_isomorphic(left) - to_isomorphic(right)
        missing = to_isomorphic(right) - to_isomorphic(left)
        raise AssertionError(
            f"surplus:\n{surplus.serialize(format='nt')}\nmissing:\n{missing.serialize(format='nt')}"
        )


def assert_same_dataset(actual: Dataset, expected: Dataset) -> None:
    """Assert that two datasets are the same but for blank node labels.

    Each is made one graph, in which the name of the graph is a part of every statement.
    """
    assert_same(_flat(actual), _flat(expected))


def _given(graph: Graph, *, interpreted: bool) -> rdflib.Graph:
    other = rdflib.Graph()
    for subject, predicate, object_ in graph:
        other.add((_node(subject), _node(predicate), _term(object_, interpreted=interpreted)))
    return other


def _flat(dataset: Dataset) -> rdflib.Graph:
    flat = rdflib.Graph()
    for name, graph in [(None, dataset.default), *dataset.named.items()]:
        for triple in graph:
            statement = rdflib.BNode()
            for place, term in zip("spo", triple, strict=True):
                flat.add((statement, rdflib.URIRef(f"flat:{place}"), _term(term)))
            if name is not None:
                flat.add((statement, rdflib.URIRef("flat:g"), _term(name)))
    return flat


def _term(term: Object, *, interpreted: bool = False) -> rdflib.term.Node:
    if not isinstance(term, Literal):
        return _node(term)
    if not interpreted:
        # Its N-Triples form, as a text: rdflib complains of typed literals that are no number.
        return rdflib.Literal(str(term))
    if term.language is not None:
        return rdflib.Literal(term.value, lang=term.language)
    if term.datatype.value == "http://www.w3.org/2001/XMLSchema#string":
        return rdflib.Literal(term.value)
    return rdflib.Literal(term.value, datatype=rdflib.URIRef(term.datatype.value))


def _node(term: Subject) -> rdflib.term.Node:
    return rdflib.URIRef(term.value) if isinstance(term, Iri) else rdflib.BNode(term.value)
