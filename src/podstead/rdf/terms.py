"""RDF terms: the names under which all other modules use the library's classes.

Terms are immutable, hashable and compare by value. Each has ``.value`` (the IRI, label or lexical
form), literals also ``.language``, ``.direction`` and ``.datatype``. Language tags are converted to
lower case. A triple is a plain tuple, which is cheap to unpack.

Each access to a part of a term creates an object, so where only the text matters, as in the writing
of Turtle, a triple is used as its text in N-Triples: ``subject predicate object`` without the dot.
Two terms are equal if and only if their texts are.

Only this module and ``codecs.py`` depend on the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, Quad, RdfFormat, serialize
from pyoxigraph import NamedNode as Iri
from pyoxigraph import Triple as TripleTerm

__all__ = [
    "BlankNode",
    "DefaultGraph",
    "GraphName",
    "Iri",
    "Literal",
    "Object",
    "Quad",
    "Statement",
    "Subject",
    "Triple",
    "TripleTerm",
    "as_triple",
    "text_of",
    "texts_of_quads",
]

Subject: TypeAlias = Iri | BlankNode
Object: TypeAlias = Iri | BlankNode | Literal
Triple: TypeAlias = tuple[Subject, Iri, Object]
GraphName: TypeAlias = Iri | BlankNode
"""The name of a named graph; the default graph has none."""
Statement: TypeAlias = Triple | Quad
"""A triple, as a tuple or as the parser returned it: in the default graph, without triple terms."""


def as_triple(statement: Statement) -> Triple:
    """The statement as a tuple."""
    if type(statement) is Quad:
        return statement.subject, statement.predicate, statement.object  # type: ignore[return-value]  # no triple terms
    return statement


def text_of(triple: Triple) -> str:
    """The text of a triple, as this module describes it."""
    subject, predicate, object_ = triple
    return f"{subject} {predicate} {object_}"


def texts_of_quads(quads: Sequence[Quad]) -> list[str]:
    """The triples of quads in the default graph as text; faster than converting each term."""
    written = serialize(quads, format=RdfFormat.N_QUADS) or b""
    # Line breaks within literals are escaped.
    return written.decode().split(" .\n")[:-1]
