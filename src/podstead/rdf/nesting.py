"""Decides which blank nodes to nest, as ``[ … ]`` or in a list ``( … )``.

A blank node that is the object of exactly one triple needs no label and is written in place. A
chain of such nodes with only ``rdf:first`` and ``rdf:rest`` is a list. The nesting depth is
bounded, because the client controls it; deeper nodes get a label and are written separately, as are
nodes that are only reachable from themselves.

Nodes are terms in JSON-LD, and the texts of terms in Turtle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

from podstead.core import vocab
from podstead.rdf.graph import Graph
from podstead.rdf.terms import BlankNode, Iri, Object, Subject

MAX_INLINE_DEPTH = 12

FIRST = Iri(vocab.RDF_FIRST)
REST = Iri(vocab.RDF_REST)
NIL = Iri(vocab.RDF_NIL)


_S = TypeVar("_S", bound=Hashable)
_P = TypeVar("_P", bound=Hashable)
_O = TypeVar("_O", bound=Hashable)


class _Nesting(Generic[_S, _P, _O]):
    """Decides where each node of a graph is written, exactly once."""

    # The terms of lists, of the type of the other nodes.
    _first: ClassVar[Any]
    _rest: ClassVar[Any]
    _nil: ClassVar[Any]

    def __init__(
        self,
        descriptions: Mapping[_S, Mapping[_P, Sequence[_O]]],
        *,
        labelled: Collection[_S] = (),
        nested_iris: Collection[_S] = (),
    ) -> None:
        self._descriptions = descriptions
        self._labelled = labelled
        self._nested_iris = nested_iris
        self._written: set[_S] = set()
        self._not_lists: set[_S] = set()

    def roots(self) -> Iterator[tuple[_S, Mapping[_P, Sequence[_O]]]]:
        """The nodes at the top level, without those that the caller nests during the iteration."""
        later = []
        for subject, description in self._descriptions.items():
            if self._is_nestable(subject):
                later.append(subject)
            else:
                self._written.add(subject)
                yield subject, description
        for subject in later:
            if subject not in self._written:
                self._written.add(subject)
                yield subject, self._descriptions[subject]

    def _blank(self, node: _S | _O) -> _S | None:
        """The node if it is a blank node."""
        raise NotImplementedError

    @cached_property
    def _mentions(self) -> Mapping[_S, int]:
        """How many triples each blank node is the object of; most graphs have none."""
        objects = chain.from_iterable(
            chain.from_iterable([each.values() for each in self._descriptions.values()])
        )
        return Counter([node for node in map(self._blank, objects) if node is not None])

    def is_anonymous(self, node: _S) -> bool:
        """Whether no triple refers to the node, so that a root needs no label."""
        return node not in self._mentions and node not in self._labelled

    def _is_nestable(self, node: _S) -> bool:
        if self._blank(node) is not None:
            return self._mentions.get(node) == 1 and node not in self._labelled
        return node in self._nested_iris

    def nested(self, node: _S, depth: int) -> Mapping[_P, Sequence[_O]] | None:
        """The description to nest in place of a node; ``None`` if its label must be written.

        ``depth`` is the depth of the mention, 0 in a root.
        """
        if depth >= MAX_INLINE_DEPTH or node in self._written or not self._is_nestable(node):
            return None
        description = self._descriptions.get(node)
        if description is not None:
            self._written.add(node)
        return description

    def list_items(self, head: _O, depth: int) -> list[_O] | None:
        """The items of the list to write in place of ``head``, if it is one."""
        items: list[_O] = []
        cells: list[_S] = []
        node = head
        while node != self._nil:
            blank = self._blank(node)
            cell = None if blank is None else self._list_cell(blank)
            if blank is None or cell is None or depth >= MAX_INLINE_DEPTH:
                # Otherwise a long chain that is not a list would be followed from every cell.
                self._not_lists.update(cells)
                return None
            cells.append(blank)
            items.append(cell[0])
            node = cell[1]
        self._written.update(cells)
        return items

    def _list_cell(self, node: _S) -> tuple[_O, _O] | None:
        if node in self._not_lists or node in self._written or not self._is_nestable(node):
            return None
        description = self._descriptions.get(node)
        if description is None or len(description) != 2:
            return None
        first, rest = description.get(self._first, ()), description.get(self._rest, ())
        return (first[0], rest[0]) if len(first) == len(rest) == 1 else None


class Nesting(_Nesting[Subject, Iri, Object]):
    """The nesting of terms.

    ``labelled`` blank nodes also occur in another graph of the dataset and always have a label.
    ``nested_iris`` are nested where they are first mentioned.
    """

    _first, _rest, _nil = FIRST, REST, NIL

    def __init__(
        self,
        graph: Graph,
        *,
        labelled: Collection[BlankNode] = (),
        nested_iris: Collection[Iri] = (),
    ) -> None:
        super().__init__(graph.by_subject(), labelled=labelled, nested_iris=nested_iris)

    def _blank(self, node: Object) -> BlankNode | None:
        return node if type(node) is BlankNode else None


class TextNesting(_Nesting[str, str, str]):
    """The nesting of the texts of terms."""

    _first, _rest, _nil = str(FIRST), str(REST), str(NIL)

    def __init__(self, graph: Graph) -> None:
        super().__init__(_grouped(graph.texts))

    def _blank(self, node: str) -> str | None:
        return node if node[0] == "_" else None


def _grouped(texts: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """As ``Graph.by_subject``, but of texts."""
    descriptions: dict[str, dict[str, list[str]]] = {}
    start, objects = "\n", list[str]()
    for text in texts:
        # Triples of one subject and predicate mostly follow one another.
        if not text.startswith(start):
            # Of the terms, only a literal, which is the last one, can contain a space.
            subject, predicate, _ = text.split(" ", 2)
            start = f"{subject} {predicate} "
            objects = descriptions.setdefault(subject, {}).setdefault(predicate, [])
        objects.append(text[len(start) :])
    return descriptions
