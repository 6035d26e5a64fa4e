"""What does a patch make of a graph? The value that N3 Patch and SPARQL Update are read into.

A patch is a sequence of operations: conditions, triples to delete, triples to insert, the same
variables in all of them. The two formats differ in what they demand (``Semantics``) and in nothing
else, so one evaluation serves both. Deletions come before insertions, so a triple in both is there
afterwards, and triples that stay keep their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count
from types import MappingProxyType

from podstead.core.errors import Conflict
from podstead.core.media_types import N3
from podstead.rdf.container import server_managed
from podstead.rdf.errors import PatchInapplicable, PatchRefused
from podstead.rdf.graph import EMPTY_GRAPH, Graph
from podstead.rdf.matching import IndexedTriples, Solution, StepBudget, solutions
from podstead.rdf.patterns import Pattern, Patterns, PatternTerm, Variable, is_ground
from podstead.rdf.terms import BlankNode, Iri, Literal, Triple

DEFAULT_BUDGET_STEPS = 1_000_000
"""One to three seconds of work; patches of applications take some hundreds of steps."""


class Semantics(Enum):
    """What a patch demands of the graph.

    ONE_SOLUTION, N3 Patch: the conditions hold in exactly one way (X-11), every deleted triple is
    there (X-12), and every triple that comes out is legal (X-14).
    ALL_SOLUTIONS, SPARQL 1.1 Update, section 3.1.3: each way in which they hold, also none, is
    acted upon; triples that are absent, illegal or have an unbound variable are passed over (X-31,
    X-35).
    """

    ONE_SOLUTION = auto()
    ALL_SOLUTIONS = auto()


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """Blank nodes in ``where`` stand for something; in ``inserts`` for a new node per solution."""

    where: Patterns = ()
    deletes: Patterns = ()
    inserts: Patterns = ()


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as read; ``prefixes`` are those of its text, for documents that have none."""

    operations: tuple[PatchOperation, ...]
    semantics: Semantics
    prefixes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def has_inserts(self) -> bool:
        """Whether it would insert anything (X-20)."""
        return any(operation.inserts for operation in self.operations)

    @property
    def has_deletes(self) -> bool:
        """Whether it would delete anything (X-21)."""
        return any(operation.deletes for operation in self.operations)

    @property
    def has_conditions(self) -> bool:
        """Whether it has conditions, so that its outcome tells what is stored (X-22, X-24)."""
        return any(operation.where for operation in self.operations)

    @property
    def inserted(self) -> Graph:
        """The triples that it inserts just as they are written: no variables, no blank nodes."""
        return Graph(
            (subject, predicate, object_)
            for operation in self.operations
            for subject, predicate, object_ in operation.inserts
            if isinstance(subject, Iri)
            and isinstance(predicate, Iri)
            and isinstance(object_, Iri | Literal)
        )

    @property
    def reads_managed(self) -> bool:
        """Whether its conditions may be about what the server states of a container (C-13)."""
        return self.semantics is Semantics.ONE_SOLUTION and self.has_conditions


def apply(
    patch: Patch,
    graph: Graph,
    *,
    budget_steps: int = DEFAULT_BUDGET_STEPS,
    other_graphs: Iterable[Graph] = (),
) -> Graph:
    """The graph after a patch.

    ``other_graphs`` are the other graphs of the same document: a new blank node gets a label that
    none of them has. Raises PatchInapplicable, PatchRefused for an illegal triple, PatchTooCostly.
    """
    evaluation = _Evaluation(patch.semantics, graph, EMPTY_GRAPH, budget_steps, other_graphs)
    return evaluation.run(patch, _accept)


def apply_to_container(
    patch: Patch,
    own: Graph,
    *,
    managed: Graph,
    container_url: str,
    budget_steps: int = DEFAULT_BUDGET_STEPS,
) -> Graph:
    """What a container's owner states about it after a patch (C-13).

    ``managed`` is what the server states; it is read for patches with ``reads_managed`` only, and
    may be empty for others. SPARQL sees the own triples alone, so that a variable never stands for
    one of the server's (X-32). Raises as ``apply``, and Conflict where triples that only the server
    states would be inserted, or are named to be deleted.
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
    """What one operation comes to. ``named_deletes`` are the deletions that the patch stands for:
    with SPARQL those written out in it, with N3 all."""

    deletes: dict[Triple, None] = field(default_factory=dict)
    named_deletes: dict[Triple, None] = field(default_factory=dict)
    inserts: dict[Triple, None] = field(default_factory=dict)


def _accept(_change: _Change) -> None:
    """Every change is the owner's to make."""


class _Evaluation:
    """One patch on one graph. ``seen`` are triples that conditions see and nothing changes."""

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
        return Graph(self._triples)

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
        """What a pattern comes to; ``None``: nothing, which is refused where it matters (X-14)."""
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
            raise PatchRefused(N3, "with its conditions met, one of its patterns is no triple")
        return None

    def _make(self, change: _Change) -> None:
        for triple in change.deletes:
            if self._is_strict and triple not in self._triples:
                raise PatchInapplicable("The patch deletes a triple that does not exist")
            if triple not in change.inserts:
                self._triples.discard(triple)
        for triple in change.inserts:
            self._triples.add(triple)


def _only(found: Iterator[Solution]) -> Solution:
    """The one solution that N3 Patch demands (X-11).

    Solutions are counted over variables: in how many ways there is something does not matter.
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
    """Blank nodes with labels that no graph has; what makes them known to one is ours."""
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
