"""What is an RDF term here? The names under which everything else uses the library's classes.

Terms are immutable, hashable and compare by value; each has ``.value`` (the IRI, label or lexical
form), literals also ``.language``, ``.direction`` and ``.datatype``. Language tags are lower-cased
when a literal is made. A triple is a plain tuple, so taking one apart costs nothing.

Only this file and ``codecs.py`` know which library makes the terms.
"""

from __future__ import annotations

from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, Quad
from pyoxigraph import NamedNode as Iri

__all__ = [
    "BlankNode",
    "DefaultGraph",
    "GraphName",
    "Iri",
    "Literal",
    "Object",
    "Quad",
    "Subject",
    "Triple",
]

Subject: TypeAlias = Iri | BlankNode
Object: TypeAlias = Iri | BlankNode | Literal
Triple: TypeAlias = tuple[Subject, Iri, Object]
GraphName: TypeAlias = Iri | BlankNode
"""The name of a named graph; the default graph has none."""
