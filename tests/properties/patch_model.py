"""What a patch comes to, by rdflib alone: it reads N3 patches, and its query engine matches.

The rules are those of N3 Patch and of SPARQL 1.1 Update, written down once more and plainly: find
the solutions, delete, then insert. rdflib's own updates are not used, since it deletes and inserts
solution by solution.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import rdflib
from rdflib.graph import QuotedGraph
from rdflib.term import BNode, Literal, Node, URIRef, Variable

SOLID = "http://www.w3.org/ns/solid/terms#"

RdflibTriple: TypeAlias = tuple[Node, Node, Node]
Solution: TypeAlias = Mapping[Node, Node]


class Formulas(NamedTuple):
    """The three parts of a patch."""

    where: Sequence[RdflibTriple] = ()
    deletes: Sequence[RdflibTriple] = ()
    inserts: Sequence[RdflibTriple] = ()


def read_n3_patch(text: str, url: str) -> Formulas:
    """The formulas of an N3 Patch of the resource at a URL."""
    graph = rdflib.Graph()
    with warnings.catch_warnings():  # its parser uses what it deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        graph.parse(data=text, format="n3", publicID=url)

    def formula(clause: str) -> list[RdflibTriple]:
        found = list(graph.objects(None, URIRef(SOLID + clause)))
        assert len(found) <= 1
        if not found:
            return []
        assert isinstance(found[0], QuotedGraph)
        return list(found[0])

    return Formulas(formula("where"), formula("deletes"), formula("inserts"))


def patched_by_n3(graph: rdflib.Graph, patch: Formulas) -> rdflib.Graph | None:
    """The graph after an N3 Patch; ``None`` if it cannot be applied (X-11, X-12, X-14)."""
    found = _solutions(graph, patch.where)
    if len(found) != 1:
        return None
    deletes, inserts = _filled(patch.deletes, found), _filled(patch.inserts, found)
    is_legal = all(map(_is_legal, [*deletes, *inserts]))
    if not is_legal or any(triple not in graph for triple in deletes):
        return None
    return _changed(graph, deletes, inserts)


def patched_by_update(graph: rdflib.Graph, patch: Formulas) -> rdflib.Graph:
    """The graph after an update with a WHERE, whose conditions have no blank nodes."""
    found = _solutions(graph, patch.where)
    deletes, inserts = _filled(patch.deletes, found), _filled(patch.inserts, found)
    return _changed(graph, filter(_is_legal, deletes), filter(_is_legal, inserts))


def block(triples: Sequence[RdflibTriple]) -> str:
    """Triple patterns as they stand between braces, in N3 and in SPARQL."""
    return " ".join(" ".join(map(_written, triple)) + " ." for triple in triples)


def _written(term: Node) -> str:
    if not isinstance(term, Literal):
        return term.n3()
    # Escaped like JSON, which N3 and SPARQL know as well: rdflib's query parser makes tabs spaces.
    text = json.dumps(str(term), ensure_ascii=False)
    if term.language:
        return f"{text}@{term.language}"
    return f"{text}^^{term.datatype.n3()}" if term.datatype else text


def _solutions(graph: rdflib.Graph, where: Sequence[RdflibTriple]) -> list[Solution]:
    """In which ways the variables, and they alone, can be given terms."""
    variables = sorted({term for triple in where for term in triple if isinstance(term, Variable)})
    if not variables:
        return [{}] if not where or graph.query(f"ASK {{ {block(where)} }}").askAnswer else []
    names = " ".join(variable.n3() for variable in variables)
    rows = graph.query(f"SELECT DISTINCT {names} {{ {block(where)} }}")
    return [dict(zip(variables, row, strict=True)) for row in rows]  # type: ignore[arg-type]


def _filled(templates: Sequence[RdflibTriple], solutions: Sequence[Solution]) -> list[RdflibTriple]:
    """The templates with each solution, and with new blank nodes for each."""
    nodes = {term for template in templates for term in template if isinstance(term, BNode)}
    filled = []
    for solution in solutions:
        given: dict[Node, Node] = {**solution}
        given.update((node, BNode()) for node in nodes)
        for subject, predicate, object_ in templates:
            triple = given.get(subject, subject), given.get(predicate, predicate)
            filled.append((*triple, given.get(object_, object_)))
    return filled


def _is_legal(triple: RdflibTriple) -> bool:
    subject, predicate, object_ = triple
    return (
        isinstance(subject, URIRef | BNode)
        and isinstance(predicate, URIRef)
        and isinstance(object_, URIRef | BNode | Literal)
    )


def _changed(
    graph: rdflib.Graph, deletes: Iterable[RdflibTriple], inserts: Iterable[RdflibTriple]
) -> rdflib.Graph:
    changed = rdflib.Graph()
    changed += graph
    for triple in deletes:
        changed.remove(triple)
    for triple in inserts:
        changed.add(triple)
    return changed
