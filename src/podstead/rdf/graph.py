"""Graphs, which are sets of triples, and datasets, which are sets of graphs.

``Graph`` and ``Dataset`` are immutable values, and can be cached and shared between threads.
Triples keep their order, so that a patched document still resembles the original; equality ignores
it.

Blank nodes are compared by label, so two parses of a document are equal only if labels are
preserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from podstead.rdf.terms import GraphName, Iri, Object, Subject, Triple

Description = Mapping[Iri, tuple[Object, ...]]
"""The statements about one subject: the objects of each predicate, in order."""

_NOTHING: Description = MappingProxyType({})


class Graph:
    """An immutable set of triples in insertion order, lazily indexed by subject."""

    __slots__ = ("_by_subject", "_given", "_set")

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self._given: tuple[Triple, ...] | None = tuple(triples)
        self._set: dict[Triple, None] = {}
        self._by_subject: dict[Subject, dict[Iri, tuple[Object, ...]]] | None = None

    @property
    def _triples(self) -> dict[Triple, None]:
        """The distinct triples. Computed lazily: hashing them takes as long as parsing, and many
        documents are parsed only to validate them."""
        given = self._given
        if given is not None:
            self._set = dict.fromkeys(given)
            self._given = None
        return self._set

    def __len__(self) -> int:
        return len(self._triples)

    def __iter__(self) -> Iterator[Triple]:
        return iter(self._triples)

    def __contains__(self, triple: object) -> bool:
        return triple in self._triples

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._triples.keys() == other._triples.keys()

    def __hash__(self) -> int:
        return hash(frozenset(self._triples))

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} triples>"

    def __or__(self, other: Graph) -> Graph:
        """Union, this graph's triples first. Blank nodes are identified by label."""
        return Graph([*self._triples, *other._triples])

    def __sub__(self, other: Graph) -> Graph:
        """Difference: the triples of this graph that are not in the other."""
        return Graph(triple for triple in self._triples if triple not in other._triples)

    def __and__(self, other: Graph) -> Graph:
        """Intersection, in this graph's order."""
        return Graph(triple for triple in self._triples if triple in other._triples)

    def subjects(
        self, predicate: Iri | None = None, object_: Object | None = None
    ) -> list[Subject]:
        """The distinct subjects of triples that match; ``None`` matches anything."""
        if predicate is None and object_ is None:
            return list(self.by_subject())
        return list(
            dict.fromkeys(
                s
                for s, p, o in self._triples
                if (predicate is None or p == predicate) and (object_ is None or o == object_)
            )
        )

    def objects(self, subject: Subject, predicate: Iri) -> tuple[Object, ...]:
        """The objects of a subject's predicate, in insertion order."""
        return self.about(subject).get(predicate, ())

    def about(self, subject: Subject) -> Description:
        """All statements about a subject; empty if there are none."""
        return self.by_subject().get(subject, _NOTHING)

    def by_subject(self) -> Mapping[Subject, Description]:
        """The graph grouped by subject and predicate, in order of first appearance."""
        if self._by_subject is None:
            self._by_subject = _grouped(self._triples)
        return self._by_subject


def _grouped(triples: Iterable[Triple]) -> dict[Subject, dict[Iri, tuple[Object, ...]]]:
    grouped: dict[Subject, dict[Iri, tuple[Object, ...]]] = {}
    repeated: dict[tuple[Subject, Iri], list[Object]] = {}
    for subject, predicate, object_ in triples:
        description = grouped.get(subject)
        if description is None:
            grouped[subject] = {predicate: (object_,)}
        elif predicate not in description:
            description[predicate] = (object_,)
        else:
            # A list that becomes a tuple at the end, because growing a tuple is quadratic.
            key = (subject, predicate)
            if key not in repeated:
                repeated[key] = list(description[predicate])
            repeated[key].append(object_)
    for (subject, predicate), objects in repeated.items():
        grouped[subject][predicate] = tuple(objects)
    return grouped


EMPTY_GRAPH = Graph()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A default graph and named graphs (R-9); most documents have only the former."""

    default: Graph
    named: Mapping[GraphName, Graph] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.default) + sum(len(graph) for graph in self.named.values())
