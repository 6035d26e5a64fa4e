"""Compares datasets up to the labels of some blank nodes.

In general this is as hard as graph isomorphism, and must not be computed for untrusted documents.
Here every blank node either has a known label in both datasets, or is part of a tree: it is
mentioned at most once. Such a node is identified by its description, and the comparison takes
linear time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias, TypeGuard

from podstead.rdf.graph import Dataset, Graph
from podstead.rdf.terms import BlankNode, Iri, Object

_Key: TypeAlias = Object | str | int
"""A term, the label of a known blank node, or the number of an unlabelled node's description."""
_Statement: TypeAlias = tuple[_Key | None, _Key, Iri | None, _Key | None]
_Numbers: TypeAlias = dict[frozenset[tuple[tuple[Iri, _Key], int]], int]
"""The descriptions of unlabelled nodes, numbered."""


class _NotATree(Exception):
    """An unlabelled blank node is mentioned twice, or by itself."""


def datasets_equivalent(
    left: Dataset,
    right: Dataset,
    *,
    left_labels: Mapping[BlankNode, str],
    right_labels: Mapping[BlankNode, str],
) -> bool:
    """Whether the datasets are equal up to the blank nodes that have no label in ``*_labels``.

    False also if those nodes do not form trees.
    """
    numbers: _Numbers = {}
    try:
        return _statements(left, left_labels, numbers) == _statements(right, right_labels, numbers)
    except _NotATree:
        return False


def _statements(
    dataset: Dataset, labels: Mapping[BlankNode, str], numbers: _Numbers
) -> Counter[_Statement]:
    statements: Counter[_Statement] = Counter()
    unlabelled: set[BlankNode] = set()
    for name, graph in [(None, dataset.default), *dataset.named.items()]:
        if not len(graph):
            continue
        graph_key = None if name is None else _key(name, labels, {})
        described = _Trees(graph, labels).numbered(numbers)
        if not unlabelled.isdisjoint(described):
            raise _NotATree
        unlabelled.update(described)
        mentioned: Counter[Object] = Counter()
        for subject, predicate, object_ in graph:
            mentioned[object_] += 1
            if subject not in described:
                said = _key(subject, labels, {}), predicate, _key(object_, labels, described)
                statements[graph_key, *said] += 1
        for node, number in described.items():
            if mentioned[node] > 1:
                raise _NotATree
            if mentioned[node] == 0:
                statements[graph_key, number, None, None] += 1
    return statements


class _Trees:
    """Numbers the unlabelled blank nodes of a graph, from the leaves up."""

    def __init__(self, graph: Graph, labels: Mapping[BlankNode, str]) -> None:
        self._labels = labels
        self._says: dict[BlankNode, list[tuple[Iri, Object]]] = {}
        self._open_parts: Counter[BlankNode] = Counter()
        self._holder: dict[BlankNode, BlankNode] = {}
        for subject, predicate, object_ in graph:
            part = object_ if self._is_unlabelled(object_) else None
            if part is not None:
                self._says.setdefault(part, [])
            if self._is_unlabelled(subject):
                self._says.setdefault(subject, []).append((predicate, object_))
                if part is not None:
                    self._open_parts[subject] += 1
                    self._holder[part] = subject

    def _is_unlabelled(self, term: Object) -> TypeGuard[BlankNode]:
        return type(term) is BlankNode and term not in self._labels

    def numbered(self, numbers: _Numbers) -> dict[BlankNode, int]:
        """A number for each node; nodes with equal descriptions have the same. Raises _NotATree."""
        described: dict[BlankNode, int] = {}
        ready = [node for node in self._says if not self._open_parts[node]]
        while ready:
            node = ready.pop()
            content = Counter(
                (predicate, _key(object_, self._labels, described))
                for predicate, object_ in self._says[node]
            )
            described[node] = numbers.setdefault(frozenset(content.items()), len(numbers))
            holder = self._holder.get(node)
            if holder is not None:
                self._open_parts[holder] -= 1
                if not self._open_parts[holder]:
                    ready.append(holder)
        if len(described) != len(self._says):
            raise _NotATree
        return described


def _key(term: Object, labels: Mapping[BlankNode, str], described: Mapping[BlankNode, int]) -> _Key:
    if type(term) is not BlankNode:
        return term
    label = labels.get(term)
    if label is not None:
        return label
    number = described.get(term)
    if number is None:
        raise _NotATree
    return number
