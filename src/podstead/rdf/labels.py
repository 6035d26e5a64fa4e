"""Labels for blank nodes in serialized documents: ``b0``, ``b1``, … in order of appearance.

The library assigns random labels to anonymous nodes. The output must be deterministic, because a
strong entity tag promises identical bytes (P-24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from podstead.rdf.terms import BlankNode, Subject, Triple


class BlankNodeLabels:
    """Assigns labels to the blank nodes of one document."""

    __slots__ = ("_labels",)

    def __init__(self) -> None:
        self._labels: dict[BlankNode, str] = {}

    def of(self, node: BlankNode) -> str:
        """The label, without ``_:``."""
        label = self._labels.get(node)
        if label is None:
            label = self._labels[node] = f"b{len(self._labels)}"
        return label

    def given(self) -> Mapping[BlankNode, str]:
        """The labels assigned so far."""
        return self._labels

    def renamed(self, term: Subject) -> Subject:
        """The term itself, or a blank node with its label."""
        return BlankNode(self.of(term)) if isinstance(term, BlankNode) else term

    def renamed_triples(self, triples: Iterable[Triple]) -> Iterator[Triple]:
        """The triples with their blank nodes relabelled."""
        for subject, predicate, object_ in triples:
            yield (
                self.renamed(subject),
                predicate,
                self.renamed(object_) if isinstance(object_, BlankNode) else object_,
            )
