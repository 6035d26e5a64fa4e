"""RDF values: terms, graphs, which are sets of triples, and datasets, which are sets of graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Protocol, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, Quad, RdfFormat, serialize
from pyoxigraph import NamedNode as Iri
from pyoxigraph import Triple as TripleTerm

# RDF terms: the names under which all other modules use the library's classes.
#
# Terms are immutable, hashable and compare by value. Each has ``.value`` (the IRI, label or lexical
# form), literals also ``.language``, ``.direction`` and ``.datatype``. Language tags are converted
# to lower case. A triple is a plain tuple, which is cheap to unpack.
#
# Each access to a part of a term creates an object, so where only the text matters, as in the
# writing of Turtle, a triple is used as its text in N-Triples: ``subject predicate object`` without
# the dot. Two terms are equal if and only if their texts are.
#
# Only this module and ``codecs.py`` depend on the library.

__all__ = ["BlankNode", "DefaultGraph", "Iri", "Literal", "Quad", "TripleTerm"]

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
    """The text of a triple, as described above."""
    subject, predicate, object_ = triple
    return f"{subject} {predicate} {object_}"


def texts_of_quads(quads: Sequence[Quad]) -> list[str]:
    """The triples of quads in the default graph as text; faster than converting each term."""
    written = serialize(quads, format=RdfFormat.N_QUADS) or b""
    # Line breaks within literals are escaped.
    return written.decode().split(" .\n")[:-1]


# ``Graph`` and ``Dataset`` are immutable values, and can be cached and shared between threads.
# Triples keep their order, so that a patched document still resembles the original; equality
# ignores it.
#
# Blank nodes are compared by label, so two parses of a document are equal only if labels are
# preserved.
#
# A graph holds its triples as terms, as text, or both; either is derived from the other when it is
# first needed.

Description = Mapping[Iri, Sequence[Object]]
"""The statements about one subject: the objects of each predicate, in order."""

_NOTHING: Description = MappingProxyType({})


class Graph:
    """An immutable set of triples in insertion order, lazily indexed by subject."""

    __slots__ = ("_by_subject", "_quads", "_set", "_texts", "_tuples")

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        # What the graph was created from: one of these, or ``_texts``.
        self._tuples: tuple[Triple, ...] | None = None
        self._quads: Sequence[Quad] | None = None
        self._set: dict[Triple, None] | None = None
        self._texts: Mapping[str, Statement] | None = None
        if type(triples) is dict:
            self._set = triples.copy()
        else:
            self._tuples = tuple(triples)
        self._by_subject: Mapping[Subject, Description] | None = None

    @classmethod
    def of_quads(cls, quads: Sequence[Quad]) -> Graph:
        """The graph of quads in the default graph, which must not change any more."""
        graph = cls()
        graph._tuples, graph._quads = None, quads
        return graph

    @classmethod
    def of_texts(cls, texts: Mapping[str, Statement]) -> Graph:
        """The graph of triples by their texts. The mapping must not change any more."""
        graph = cls()
        graph._tuples, graph._texts = None, texts
        return graph

    @property
    def _triples(self) -> dict[Triple, None]:
        """The distinct triples. Computed lazily: hashing them takes as long as parsing, and many
        documents are parsed only to validate them.

        A copy of a dict, and the comparison of two, use the hashes that it contains.
        """
        # In this order: another thread may set the triples here, and drop their source.
        tuples, quads, texts = self._tuples, self._quads, self._texts
        distinct = self._set
        if distinct is None:
            if tuples is None:
                statements = quads if quads is not None else texts.values() if texts else ()
                tuples = tuple(map(as_triple, statements))
            distinct = self._set = dict.fromkeys(tuples)
            self._tuples = self._quads = None
        return distinct

    @property
    def texts(self) -> Mapping[str, Statement]:
        """The distinct triples by their text in N-Triples, in order.

        Texts are cheaper than terms to compare, to hash and to take apart.
        """
        texts = self._texts
        if texts is None:
            quads = self._quads
            if quads is not None:
                texts = dict(zip(texts_of_quads(quads), quads, strict=True))
            else:
                texts = {text_of(triple): triple for triple in self._triples}
            self._texts = texts
        return texts

    def __len__(self) -> int:
        return len(self._triples if self._texts is None else self._texts)

    def __iter__(self) -> Iterator[Triple]:
        return iter(self._triples)

    def __contains__(self, triple: object) -> bool:
        return triple in self._triples

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return False
        if self is other:
            return True
        if self._texts is not None and other._texts is not None:
            return self._texts.keys() == other._texts.keys()
        return self._triples == other._triples

    def __hash__(self) -> int:
        return hash(frozenset(self._triples))

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} triples>"

    def __or__(self, other: Graph) -> Graph:
        """Union, this graph's triples first. Blank nodes are identified by label."""
        return Graph(self._triples | other._triples)

    def to_dict(self) -> dict[Triple, None]:
        """The triples as the keys of a new dict, which a ``Graph`` can be created from again
        without hashing them."""
        return self._triples.copy()

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

    def objects(self, subject: Subject, predicate: Iri) -> Sequence[Object]:
        """The objects of a subject's predicate, in insertion order."""
        return self.about(subject).get(predicate, ())

    def iris(self, subject: Subject, *predicates: Iri) -> list[str]:
        """The objects of statements with a subject and one of the predicates that are IRIs."""
        objects = chain.from_iterable(self.objects(subject, each) for each in predicates)
        return [each.value for each in objects if isinstance(each, Iri)]

    def literals(self, subject: Subject, *predicates: Iri) -> list[str]:
        """The values of those that are literals."""
        objects = chain.from_iterable(self.objects(subject, each) for each in predicates)
        return [each.value for each in objects if isinstance(each, Literal)]

    def about(self, subject: Subject) -> Description:
        """All statements about a subject; empty if there are none."""
        return self.by_subject().get(subject, _NOTHING)

    def by_subject(self) -> Mapping[Subject, Description]:
        """The graph grouped by subject and predicate, in order of first appearance."""
        if self._by_subject is None:
            self._by_subject = _grouped(self._triples)
        return self._by_subject


def _grouped(triples: Iterable[Triple]) -> dict[Subject, Description]:
    # Lists at first, because growing a tuple is quadratic. Triples of one subject and predicate
    # mostly follow one another, and comparing a term takes a third of the time of finding it.
    lists: dict[Subject, dict[Iri, list[Object]]] = {}
    last_subject, last_predicate = None, None
    description: dict[Iri, list[Object]] = {}
    objects: list[Object] = []
    for subject, predicate, object_ in triples:
        if subject != last_subject:
            description = lists.setdefault(subject, {})
            last_subject, last_predicate = subject, None
        if predicate != last_predicate:
            objects = description.setdefault(predicate, [])
            last_predicate = predicate
        objects.append(object_)
    return {
        subject: {predicate: tuple(objects) for predicate, objects in description.items()}
        for subject, description in lists.items()
    }


EMPTY_GRAPH = Graph()


_NO_GRAPHS: Mapping[GraphName, Graph] = MappingProxyType({})


class Dataset:
    """An immutable default graph with named graphs (R-9); most documents have only the former."""

    __slots__ = ("_default", "_named", "_quads")

    def __init__(self, default: Graph, named: Mapping[GraphName, Graph] = _NO_GRAPHS) -> None:
        self._default = default
        self._named = named
        self._quads: Sequence[Quad] | None = None

    @classmethod
    def of(cls, quads: Sequence[Quad], *, only_default: bool = False) -> Dataset:
        """A dataset of quads without triple terms, which are grouped on first use.

        Grouping takes half as long as parsing, and many documents are parsed only to validate them.
        ``only_default`` means that none is in a named graph. The quads must not change any more.
        """
        if only_default:
            return cls(Graph.of_quads(quads))
        dataset = cls(EMPTY_GRAPH)
        dataset._quads = quads
        return dataset

    @property
    def default(self) -> Graph:
        """The default graph."""
        self._group()
        return self._default

    @property
    def named(self) -> Mapping[GraphName, Graph]:
        """The named graphs by name; none is empty if the dataset was parsed."""
        self._group()
        return self._named

    def _group(self) -> None:
        quads = self._quads
        if quads is not None:
            # In this order: another thread may see what is set here, and would group again.
            self._default, self._named = _graphs(quads)
            self._quads = None

    def with_default(self, graph: Graph) -> Dataset:
        """The same dataset with another default graph."""
        return Dataset(graph, self.named)

    def __len__(self) -> int:
        return len(self.default) + sum(len(graph) for graph in self.named.values())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Dataset)
            and self.default == other.default
            and self.named == other.named
        )

    __hash__ = None  # type: ignore[assignment]  # nothing needs it

    def __repr__(self) -> str:
        return f"<Dataset of {len(self)} triples in {1 + len(self.named)} graphs>"


def _graphs(quads: Iterable[Quad]) -> tuple[Graph, Mapping[GraphName, Graph]]:
    default: list[Triple] = []
    named: dict[GraphName, list[Triple]] = {}
    for subject, predicate, object_, graph_name in quads:
        triple = (subject, predicate, object_)
        if isinstance(graph_name, DefaultGraph):
            default.append(triple)
        else:
            named.setdefault(graph_name, []).append(triple)
    if not named:
        return Graph(default), _NO_GRAPHS
    return Graph(default), MappingProxyType({name: Graph(group) for name, group in named.items()})


class RdfParser(Protocol):
    """Parses bytes into a graph; relative IRIs are resolved against ``base_iri``."""

    async def __call__(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        """Raises RequestRefused for content that is not RDF, is too large, or is not understood.
        UnknownContext and OutboundError may be temporary: a JSON-LD context is not available."""
