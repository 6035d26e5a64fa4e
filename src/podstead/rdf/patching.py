"""Patches, the common form of N3 Patch and SPARQL Update, and applying them to a graph.

A patch is a sequence of operations, each with conditions, triples to delete and triples to insert
that share variables. The two formats differ only in their ``Semantics``, so one evaluation serves
both. Deletions precede insertions, so a triple in both remains, and unchanged triples keep their
position.

A patch without conditions, variables and blank nodes has the same effect on every graph. It is
applied to the texts of the triples, which saves converting the graph to terms and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count
from types import MappingProxyType

import msgspec

from podstead.core.errors import Conflict
from podstead.core.media_types import N3
from podstead.rdf.errors import PatchInapplicable, PatchRefused
from podstead.rdf.graph import EMPTY_GRAPH, BlankNode, Graph, Iri, Triple, text_of
from podstead.rdf.listing import server_managed
from podstead.rdf.patterns import (
    IndexedTriples,
    Pattern,
    Patterns,
    PatternTerm,
    Solution,
    StepBudget,
    Variable,
    ground_triple,
    is_ground,
    solutions,
)

_NOT_THERE = "The patch deletes a triple that does not exist"

DEFAULT_BUDGET_STEPS = 1_000_000
"""One to three seconds of work; the patches of applications take some hundreds of steps."""


class Semantics(Enum):
    """What a patch requires of the graph.

    ONE_SOLUTION (N3 Patch): the conditions must hold in exactly one way (X-11), every deleted
    triple must exist (X-12), and every resulting triple must be legal (X-14). ALL_SOLUTIONS (SPARQL
    1.1 Update, section 3.1.3): the operation is applied for every solution, including none; triples
    that are absent, illegal or have an unbound variable are skipped (X-31, X-35).
    """

    ONE_SOLUTION = auto()
    ALL_SOLUTIONS = auto()


class PatchOperation(msgspec.Struct, frozen=True):
    """One operation. Blank nodes match any term in ``where``, and create a new node per solution in
    ``inserts``."""

    where: Patterns = ()
    deletes: Patterns = ()
    inserts: Patterns = ()


class Patch(msgspec.Struct, frozen=True):
    """A parsed patch; ``prefixes`` are those that it declares."""

    operations: tuple[PatchOperation, ...]
    semantics: Semantics
    prefixes: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    @property
    def has_inserts(self) -> bool:
        """Whether the patch inserts triples (X-20)."""
        return any(operation.inserts for operation in self.operations)

    @property
    def has_deletes(self) -> bool:
        """Whether the patch deletes triples (X-21)."""
        return any(operation.deletes for operation in self.operations)

    @property
    def has_conditions(self) -> bool:
        """Whether the patch has conditions, so that its outcome reveals what is stored (X-22,
        X-24)."""
        return any(operation.where for operation in self.operations)

    @property
    def inserted(self) -> Graph:
        """The inserted triples that contain neither variables nor blank nodes."""
        return Graph(
            triple
            for operation in self.operations
            for triple in map(ground_triple, operation.inserts)
            if triple is not None
        )

    @property
    def reads_managed(self) -> bool:
        """Whether the conditions can match server-managed statements about a container (C-13)."""
        return self.semantics is Semantics.ONE_SOLUTION and self.has_conditions


def apply(
    patch: Patch,
    graph: Graph,
    *,
    budget_steps: int = DEFAULT_BUDGET_STEPS,
    other_graphs: Iterable[Graph] = (),
) -> Graph:
    """Apply a patch to a graph.

    ``other_graphs`` are the other graphs of the same document, whose blank node labels are not
    reused. Raises PatchInapplicable, PatchRefused for an illegal triple, PatchTooCostly.
    """
    changes = _ground_changes(patch)
    if changes is not None:
        return _apply_ground(changes, graph, StepBudget(budget_steps), patch.semantics)
    evaluation = _Evaluation(patch.semantics, graph, EMPTY_GRAPH, budget_steps, other_graphs)
    return evaluation.run(patch, _accept)


_Texts = dict[str, Triple]
"""Triples by their texts."""


def _ground_changes(patch: Patch) -> list[tuple[_Texts, _Texts]] | None:
    """What each operation deletes and inserts; ``None`` if that depends on the graph, or a triple
    is illegal."""
    changes = []
    for operation in patch.operations:
        deletes, inserts = _ground_texts(operation.deletes), _ground_texts(operation.inserts)
        if operation.where or deletes is None or inserts is None:
            return None
        changes.append((deletes, inserts))
    return changes


def _ground_texts(patterns: Patterns) -> _Texts | None:
    texts: _Texts = {}
    for pattern in patterns:
        triple = ground_triple(pattern)
        if triple is None:
            return None
        texts[text_of(triple)] = triple
    return texts


def _apply_ground(
    changes: list[tuple[_Texts, _Texts]], graph: Graph, budget: StepBudget, semantics: Semantics
) -> Graph:
    """As :class:`_Evaluation` does, for changes that do not depend on the graph."""
    texts = dict(graph.texts)
    for deletes, inserts in changes:
        budget.spend(1 + len(deletes) + len(inserts))
        if semantics is Semantics.ONE_SOLUTION and not deletes.keys() <= texts.keys():
            raise PatchInapplicable(_NOT_THERE)
        for text in deletes:
            if text not in inserts:
                texts.pop(text, None)
        for text, triple in inserts.items():
            texts.setdefault(text, triple)
    return Graph.of_texts(texts)


def apply_to_container(
    patch: Patch,
    own: Graph,
    *,
    managed: Graph,
    container_url: str,
    budget_steps: int = DEFAULT_BUDGET_STEPS,
) -> Graph:
    """Apply a patch to the own triples of a container (C-13).

    ``managed`` are the server-managed statements, which only patches with ``reads_managed`` need.
    SPARQL matches the own triples only, so that variables never match server-managed ones (X-32).
    Raises as ``apply``, and Conflict if server-managed triples would be inserted or are explicitly
    deleted.
    """

    def check(change: _Change) -> None:
        changed = Graph([*change.named_deletes, *change.inserts])
        for triple in server_managed(changed, container_url=container_url):
            raise Conflict(
                f"The patch changes a statement that the server maintains: {triple[1].value}"
            )

    seen = managed if patch.reads_managed else EMPTY_GRAPH
    return _Evaluation(patch.semantics, own, seen, budget_steps, ()).run(patch, check)


@dataclass(frozen=True, slots=True)
class _Change:
    """The effect of one operation. ``named_deletes`` are the explicit deletions: with SPARQL those
    without variables, with N3 Patch all."""

    deletes: dict[Triple, None] = field(default_factory=dict)
    named_deletes: dict[Triple, None] = field(default_factory=dict)
    inserts: dict[Triple, None] = field(default_factory=dict)


def _accept(_change: _Change) -> None:
    """Allow every change."""


class _Evaluation:
    """Applies one patch to one graph. ``seen`` are read-only triples that conditions can match."""

    def __init__(
        self,
        semantics: Semantics,
        graph: Graph,
        seen: Graph,
        budget_steps: int,
        other_graphs: Iterable[Graph],
    ) -> None:
        self._is_strict = semantics is Semantics.ONE_SOLUTION
        self._triples = IndexedTriples(graph)
        self._visible = IndexedTriples(graph | seen) if seen else self._triples
        self._budget = StepBudget(budget_steps)
        self._fresh_nodes = _fresh_nodes([graph, seen, *other_graphs])

    def run(self, patch: Patch, check: Callable[[_Change], None]) -> Graph:
        for operation in patch.operations:
            self._budget.spend()
            change = self._change(operation)
            check(change)
            self._make(change)
        return self._triples.graph()

    def _change(self, operation: PatchOperation) -> _Change:
        change = _Change()
        for solution in self._solutions(operation):
            self._budget.spend(len(operation.deletes) + len(operation.inserts))
            for pattern in operation.deletes:
                self._delete(pattern, solution, change)
            nodes: dict[BlankNode, BlankNode] = {}
            for subject, predicate, object_ in operation.inserts:
                renewed = self._renewed(subject, nodes), predicate, self._renewed(object_, nodes)
                triple = self._triple(renewed, solution)
                if triple is not None:
                    change.inserts[triple] = None
        return change

    def _solutions(self, operation: PatchOperation) -> Iterator[Solution]:
        found = solutions(operation.where, self._visible, self._budget)
        return iter([_only(found)]) if self._is_strict else found

    def _delete(self, pattern: Pattern, solution: Solution, change: _Change) -> None:
        triple = self._triple(pattern, solution)
        if triple is not None:
            change.deletes[triple] = None
            if self._is_strict or is_ground(pattern):
                change.named_deletes[triple] = None

    def _renewed(self, term: PatternTerm, nodes: dict[BlankNode, BlankNode]) -> PatternTerm:
        if not isinstance(term, BlankNode):
            return term
        if term not in nodes:
            nodes[term] = next(self._fresh_nodes)
        return nodes[term]

    def _triple(self, pattern: Pattern, solution: Solution) -> Triple | None:
        """The triple of a pattern under a solution; ``None`` if it is illegal (X-14)."""
        subject, predicate, object_ = [
            solution.get(term) if isinstance(term, Variable) else term for term in pattern
        ]
        if (
            isinstance(subject, (Iri, BlankNode))
            and isinstance(predicate, Iri)
            and object_ is not None
        ):
            return subject, predicate, object_
        if self._is_strict:
            raise PatchRefused(N3, "with this solution, one of its patterns is not a valid triple")
        return None

    def _make(self, change: _Change) -> None:
        for triple in change.deletes:
            if self._is_strict and triple not in self._triples:
                raise PatchInapplicable(_NOT_THERE)
            if triple not in change.inserts:
                self._triples.discard(triple)
        for triple in change.inserts:
            self._triples.add(triple)


def _only(found: Iterator[Solution]) -> Solution:
    """The only solution, as N3 Patch requires (X-11).

    Solutions that differ only in blank nodes are the same solution.
    """
    first: Solution | None = None
    for solution in found:
        named: Solution = {
            unknown: term for unknown, term in solution.items() if type(unknown) is Variable
        }
        if first is not None and named != first:
            raise PatchInapplicable("The conditions of the patch hold in more than one way")
        first = named
        if not named:
            break
    if first is None:
        raise PatchInapplicable("The conditions of the patch do not hold")
    return first


def _fresh_nodes(graphs: list[Graph]) -> Iterator[BlankNode]:
    """Blank nodes with labels that do not occur in any of the graphs."""
    taken = {
        term.value
        for graph in graphs
        for triple in graph
        for term in (triple[0], triple[2])
        if isinstance(term, BlankNode)
    }
    for number in count():
        label = f"n{number}"
        if label not in taken:
            yield BlankNode(label)
