"""RDF terms: the names under which all other modules use the library's classes.

Terms are immutable, hashable and compare by value. Each has ``.value`` (the IRI, label or lexical
form), literals also ``.language``, ``.direction`` and ``.datatype``. Language tags are converted to
lower case. A triple is a plain tuple, which is cheap to unpack.

Only this module and ``codecs.py`` depend on the library.
"""

from __future__ import annotations

from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, Quad
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
    "Subject",
    "Triple",
    "TripleTerm",
]

Subject: TypeAlias = Iri | BlankNode
Object: TypeAlias = Iri | BlankNode | Literal
Triple: TypeAlias = tuple[Subject, Iri, Object]
GraphName: TypeAlias = Iri | BlankNode
"""The name of a named graph; the default graph has none."""
