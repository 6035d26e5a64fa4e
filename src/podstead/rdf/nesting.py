"""Which blank nodes can be nested, as ``[ … ]`` or in a list ``( … )``?

A blank node that is the object of exactly one triple needs no label and is written in place. A
chain of such nodes with only ``rdf:first`` and ``rdf:rest`` is a list. The nesting depth is
bounded, because the client controls it; deeper nodes get a label and are written separately, as are
nodes that are only reachable from themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from podstead.core import vocab
from podstead.rdf.graph import Description, Graph
from podstead.rdf.terms import BlankNode, Iri, Object, Subject

MAX_INLINE_DEPTH = 12

FIRST = Iri(vocab.RDF_FIRST)
REST = Iri(vocab.RDF_REST)
NIL = Iri(vocab.RDF_NIL)


class Nesting:
    """Decides where each node of a graph is written, exactly once.

    ``labelled`` blank nodes also occur in another graph of the dataset and always have a label.
    ``nested_iris`` are nested where they are first mentioned.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        labelled: Collection[BlankNode] = (),
        nested_iris: Collection[Iri] = (),
    ) -> None:
        self._descriptions = graph.by_subject()
        mentions = Counter([o for _, _, o in graph if type(o) is BlankNode])
        self._mentions = mentions
        self._labelled = labelled
        self._nested_iris = nested_iris
        self._written: set[Subject] = set()
        self._not_lists: set[BlankNode] = set()

    def roots(self) -> Iterator[tuple[Subject, Description]]:
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

    def is_anonymous(self, node: BlankNode) -> bool:
        """Whether no triple refers to the node, so that a root needs no label."""
        return node not in self._mentions and node not in self._labelled

    def _is_nestable(self, node: Subject) -> bool:
        if type(node) is BlankNode:
            return self._mentions.get(node) == 1 and node not in self._labelled
        return node in self._nested_iris

    def nested(self, node: Subject, depth: int) -> Description | None:
        """The description to nest in place of a node; ``None`` if its label must be written.

        ``depth`` is the depth of the mention, 0 in a root.
        """
        if depth >= MAX_INLINE_DEPTH or node in self._written or not self._is_nestable(node):
            return None
        description = self._descriptions.get(node)
        if description is not None:
            self._written.add(node)
        return description

    def list_items(self, head: Object, depth: int) -> list[Object] | None:
        """The items of the list to write in place of ``head``, if it is one."""
        items: list[Object] = []
        cells: list[BlankNode] = []
        node = head
        while node != NIL:
            cell = self._list_cell(node)
            if cell is None or depth >= MAX_INLINE_DEPTH:
                # Otherwise a long chain that is not a list would be followed from every cell.
                self._not_lists.update(cells)
                return None
            cells.append(node)  # type: ignore[arg-type]
            items.append(cell[0])
            node = cell[1]
        self._written.update(cells)
        return items

    def _list_cell(self, node: Object) -> tuple[Object, Object] | None:
        if (
            type(node) is not BlankNode
            or node in self._not_lists
            or node in self._written
            or not self._is_nestable(node)
        ):
            return None
        description = self._descriptions.get(node)
        if description is None or len(description) != 2:
            return None
        first, rest = description.get(FIRST, ()), description.get(REST, ())
        return (first[0], rest[0]) if len(first) == len(rest) == 1 else None
