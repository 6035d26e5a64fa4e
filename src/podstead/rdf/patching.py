"""Patches, the common form of N3 Patch and SPARQL Update, and applying them to a graph.

A patch is a sequence of operations, each with conditions, triples to delete and triples to insert
that share variables. The two formats differ only in their ``Semantics``, so one evaluation serves
both. Deletions precede insertions, so a triple in both remains, and unchanged triples keep their
position.

A patch without conditions, variables and blank nodes has the same effect on every graph. It is
applied to the texts of the triples, which saves converting the graph to terms and back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, auto
from hashlib import sha256
from itertools import count
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from podstead.core.errors import Conflict
from podstead.core.media_types import N3
from podstead.core.value import Value
from podstead.rdf import errors
from podstead.rdf.codecs import Document
from podstead.rdf.graph import EMPTY_GRAPH, BlankNode, Graph, Iri, Literal, Object, Triple, text_of
from podstead.rdf.limits import RdfLimits
from podstead.rdf.listing import server_managed

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
            raise errors.PatchInapplicable(_NOT_THERE)
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
            raise errors.PatchRefused(
                N3, "with this solution, one of its patterns is not a valid triple"
            )
        return None

    def _make(self, change: _Change) -> None:
        for triple in change.deletes:
            if self._is_strict and triple not in self._triples:
                raise errors.PatchInapplicable(_NOT_THERE)
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
            raise errors.PatchInapplicable("The conditions of the patch hold in more than one way")
        first = named
        if not named:
            break
    if first is None:
        raise errors.PatchInapplicable("The conditions of the patch do not hold")
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


# Triple patterns, and how to parse them with a parser that does not support variables.
#
# A pattern is a triple that can contain variables. Before parsing, each variable is replaced with a
# placeholder IRI, which is turned into a variable again afterwards. The IRI contains a digest of
# the entire text, so the text itself cannot contain such an IRI.


class Variable(Value):
    """A variable; the name is without ``?`` or ``$``."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


PatternTerm: TypeAlias = Iri | BlankNode | Literal | Variable
Pattern: TypeAlias = tuple[PatternTerm, PatternTerm, PatternTerm]
Patterns: TypeAlias = tuple[Pattern, ...]


def variables_in(patterns: Iterable[Pattern]) -> dict[Variable, None]:
    """The variables of patterns, in order of appearance."""
    return {term: None for pattern in patterns for term in pattern if isinstance(term, Variable)}


def blank_nodes_in(patterns: Iterable[Pattern]) -> dict[BlankNode, None]:
    """The blank nodes of patterns, in order of appearance."""
    return {term: None for pattern in patterns for term in pattern if isinstance(term, BlankNode)}


def is_ground(pattern: Pattern) -> bool:
    """Whether the pattern contains neither variables nor blank nodes."""
    return not any(isinstance(term, (Variable, BlankNode)) for term in pattern)


def ground_triple(pattern: Pattern) -> Triple | None:
    """The pattern as a triple; ``None`` if it has a variable or a blank node, or is illegal."""
    subject, predicate, object_ = pattern
    if type(subject) is Iri and type(predicate) is Iri and isinstance(object_, Iri | Literal):
        return subject, predicate, object_
    return None


class VariablePlaceholders:
    """Replaces the variables of a text with IRIs, and restores them in the parsed triples."""

    __slots__ = ("_declares", "_media_type", "_prefix", "_variables_left")

    def __init__(self, text: str, media_type: str, limits: RdfLimits) -> None:
        self._prefix = f"urn:{sha256(text.encode()).hexdigest()[:24]}:"
        self._media_type = media_type
        self._declares = False
        # The accepted number of triples cannot contain more, and each makes the text longer.
        self._variables_left = 3 * limits.max_triples

    def iri(self, name: str) -> str:
        """The placeholder for a variable (or, with an empty name, a filler).

        Raises RdfTooLarge for more of them than a document can contain.
        """
        self._variables_left -= 1
        if self._variables_left < 0:
            raise errors.RdfTooLarge(
                "The patch contains more variables than a document can have terms"
            )
        return f"<{self._prefix}{name}>"

    def declaration(self) -> str:
        """The replacement for ``@forAll``, which declares the IRIs after it as variables."""
        self._declares = True
        return f"{self.iri('')} {self.iri(_DECLARES.name)}"

    def declared(self, graph: Graph) -> frozenset[Iri]:
        """The IRIs that a graph declares to be variables. Raises MalformedRdf for another term."""
        if not self._declares:  # and the text cannot contain the IRI of a declaration otherwise
            return frozenset()
        subject, predicate = Iri(self._prefix), Iri(self._prefix + _DECLARES.name)
        found: set[Iri] = set()
        for term in graph.objects(subject, predicate):
            if not isinstance(term, Iri) or self.is_variable(term):
                raise errors.MalformedRdf(
                    self._media_type, "only IRIs can be declared as variables"
                )
            found.add(term)
        return frozenset(found)

    def is_variable(self, term: Object) -> bool:
        """Whether a parsed term is a placeholder."""
        return isinstance(term, Iri) and term.value.startswith(self._prefix)

    def patterns(self, graph: Graph, declared: AbstractSet[Iri] = frozenset()) -> Patterns:
        """The parsed patterns with their variables, including those that are ``declared``.

        Raises MalformedRdf for a variable in a place where it is not allowed.
        """
        return tuple(self._read(graph, declared))

    def _read(self, graph: Graph, declared: AbstractSet[Iri]) -> Iterator[Pattern]:
        for triple in graph:
            subject, predicate, object_ = [self._term(term, declared) for term in triple]
            if predicate == _FILLER or (subject, predicate) == (_FILLER, _DECLARES):
                continue
            if _FILLER in (subject, object_):
                raise errors.MalformedRdf(self._media_type, "a statement has too few terms")
            yield subject, predicate, object_

    def _term(self, term: Object, declared: AbstractSet[Iri]) -> PatternTerm:
        if isinstance(term, Literal):
            if term.datatype.value.startswith(self._prefix):
                raise errors.MalformedRdf(self._media_type, "a variable cannot be a datatype")
        elif isinstance(term, Iri):
            if term.value.startswith(self._prefix):
                return Variable(term.value.removeprefix(self._prefix))
            if term in declared:
                return Variable(term.value)
        return term

    def check(self, document: Document) -> None:
        """Refuse a variable that is used as a base or a namespace (MalformedRdf)."""
        namespaces = [document.base_iri or "", *document.prefixes.values()]
        if any(namespace.startswith(self._prefix) for namespace in namespaces):
            raise errors.MalformedRdf(self._media_type, "a variable cannot be a namespace")

    def renamed(self, error: errors.MalformedRdf) -> errors.MalformedRdf:
        """Convert a parser's error to this media type, with the original variables."""
        reason = error.reason.replace(f"<{self._prefix}>", "").replace(self._prefix, "?")
        return type(error)(self._media_type, reason, line=error.line)


# Names that no variable in a text can have.
_FILLER = Variable("")
_DECLARES = Variable("/declares")


# Matching the conditions of a patch against a graph, for both N3 and SPARQL patches.
#
# Conditions are triple patterns. A solution assigns a term to each variable and each blank node so
# that all patterns become triples of the graph. The search always continues with the pattern that
# has the fewest candidate triples. Since the client decides how much there is to search, the search
# is bounded, by steps and not by time: a patch must not fail on a busy server and succeed on an
# idle one.

Unknown: TypeAlias = Variable | BlankNode
"""What a solution assigns a term to. A blank node in a condition matches any term, like a variable
(SPARQL 1.1 Query, section 4.1.4)."""

Solution: TypeAlias = Mapping[Unknown, Object]

# A list of candidates this short is searched as it is; looking for a shorter one does not pay.
_SHORT = 16

_SUBJECT, _PREDICATE, _OBJECT = 0, 1, 2


class StepBudget:
    """The remaining work that one patch may cause."""

    __slots__ = ("_left",)

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int = 1) -> None:
        """Spend steps of one to three microseconds each. Raises PatchTooCostly if none are left."""
        self._left -= steps
        if self._left < 0:
            raise errors.PatchTooCostly(
                "The conditions of the patch take too many steps to evaluate"
            )


class IndexedTriples:
    """A mutable set of triples in insertion order.

    The index of a position is built on first use; short documents need none.
    """

    __slots__ = ("_by_term", "_triples")

    def __init__(self, graph: Graph) -> None:
        # Dicts without values, here and in the indexes, because sets are not ordered, and the
        # result of a patch must be deterministic.
        self._triples = graph.to_dict()
        self._by_term: list[dict[Object, dict[Triple, None]] | None] = [None, None, None]

    def __contains__(self, triple: object) -> bool:
        return triple in self._triples

    def graph(self) -> Graph:
        """The triples as they are now."""
        return Graph(self._triples)

    def add(self, triple: Triple) -> None:
        """Add a triple at the end, if it is not present."""
        if triple not in self._triples:
            self._triples[triple] = None
            for position, index in enumerate(self._by_term):
                if index is not None:
                    index.setdefault(triple[position], {})[triple] = None

    def discard(self, triple: Triple) -> None:
        """Remove a triple, if it is present."""
        if triple in self._triples:
            del self._triples[triple]
            for position, index in enumerate(self._by_term):
                if index is not None:
                    del index[triple[position]][triple]

    def candidates(
        self, subject: Object | None, predicate: Object | None, object_: Object | None
    ) -> Collection[Triple]:
        """A superset of the triples with the given terms; ``None`` matches any term."""
        if subject is not None and predicate is not None and object_ is not None:
            triple = (subject, predicate, object_)
            return (triple,) if triple in self._triples else ()
        found: Collection[Triple] = self._triples
        # The predicate is last, because many triples share it; its index is often not needed.
        for position, term in ((_SUBJECT, subject), (_OBJECT, object_), (_PREDICATE, predicate)):
            if len(found) <= _SHORT:
                break
            if term is not None:
                found = min(found, self._having(position, term), key=len)
        return found

    def _having(self, position: int, term: Object) -> Collection[Triple]:
        index = self._by_term[position]
        if index is None:
            index = self._by_term[position] = {}
            for triple in self._triples:
                index.setdefault(triple[position], {})[triple] = None
        return index.get(term, ())


def solutions(
    patterns: Patterns, triples: IndexedTriples, budget: StepBudget
) -> Iterator[Solution]:
    """All solutions, each once. Without patterns, there is one empty solution.

    The triples must not change during the iteration. Raises PatchTooCostly.
    """
    return _Search(patterns, triples, budget).run()


# Unknowns are numbered, so that bindings are a list. No RDF term is an ``int``.
_Slot: TypeAlias = int
_Compiled: TypeAlias = tuple[Object | _Slot, Object | _Slot, Object | _Slot]


@dataclass(slots=True)
class _Choice:
    """A pattern, the remaining candidates for it, and the slots that the current one has filled.

    ``place`` is the position of the pattern among the open ones, to which backtracking returns it.
    """

    pattern: _Compiled
    place: int
    candidates: Iterator[Triple]
    filled: list[_Slot]


class _Search:
    """A depth-first search without recursion, since there can be many patterns."""

    def __init__(self, patterns: Patterns, triples: IndexedTriples, budget: StepBudget) -> None:
        self._slots: dict[Unknown, _Slot] = {}
        # The first ``_open_count`` patterns are open. A chosen one is swapped with the last open
        # one, which takes constant time. _choose starts with the last one, hence the reversal: a
        # chain of patterns is followed in the order in which it is written.
        self._open = [self._compiled(pattern) for pattern in reversed(patterns)]
        self._open_count = len(self._open)
        self._terms: list[Object | None] = [None] * len(self._slots)
        self._triples = triples
        self._budget = budget

    def _compiled(self, pattern: tuple[Object | Variable, ...]) -> _Compiled:
        subject, predicate, object_ = [
            self._slots.setdefault(term, len(self._slots))
            if isinstance(term, (Variable, BlankNode))
            else term
            for term in pattern
        ]
        return subject, predicate, object_

    def run(self) -> Iterator[Solution]:
        if not self._open:
            yield {}
            return
        choices = [self._choose()]
        while choices:
            choice = choices[-1]
            if not self._advance(choice):
                # Choices are undone in reverse order, so each swap finds what it left behind.
                choices.pop()
                self._reopen(choice)
            elif self._open_count:
                choices.append(self._choose())
            else:
                yield self._solution()  # and then the next candidate of the last choice

    def _solution(self) -> Solution:
        # With many unknowns and many solutions, the copying is significant work.
        self._budget.spend(len(self._slots))
        return {
            unknown: term
            for unknown, term in zip(self._slots, self._terms, strict=True)
            if term is not None  # never: every slot stems from a pattern, and all are matched
        }

    def _choose(self) -> _Choice:
        """Choose the open pattern with the fewest candidates."""
        place = self._open_count - 1
        fewest = self._candidates(self._open[place])
        for other in range(place - 1, -1, -1):
            if len(fewest) <= 1:  # no branching, so there is no better choice
                break
            # Otherwise each step could examine a thousand patterns for free.
            self._budget.spend()
            candidates = self._candidates(self._open[other])
            if len(candidates) < len(fewest):
                place, fewest = other, candidates
        pattern = self._open[place]
        self._open_count -= 1
        self._swap(place)
        return _Choice(pattern, place, iter(fewest), [])

    def _reopen(self, choice: _Choice) -> None:
        self._swap(choice.place)
        self._open_count += 1

    def _swap(self, place: int) -> None:
        patterns, last = self._open, self._open_count
        patterns[place], patterns[last] = patterns[last], patterns[place]

    def _candidates(self, pattern: _Compiled) -> Collection[Triple]:
        subject, predicate, object_ = pattern
        return self._triples.candidates(
            self._known(subject), self._known(predicate), self._known(object_)
        )

    def _known(self, term: Object | _Slot) -> Object | None:
        return self._terms[term] if isinstance(term, int) else term

    def _advance(self, choice: _Choice) -> bool:
        """Advance to the next matching candidate; ``False`` if there is none."""
        self._empty(choice.filled)
        for triple in choice.candidates:
            self._budget.spend()
            if self._fits(choice.pattern, triple, choice.filled):
                return True
            self._empty(choice.filled)  # undo what a triple filled before a mismatch was found
        return False

    def _fits(self, pattern: _Compiled, triple: Triple, filled: list[_Slot]) -> bool:
        # All three terms are compared: a candidate may share only some of the known terms, and a
        # variable that occurs twice in a pattern is bound by its first occurrence.
        for wanted, term in zip(pattern, triple, strict=True):
            known = self._known(wanted)
            if known is None and isinstance(wanted, int):
                self._terms[wanted] = term
                filled.append(wanted)
            elif known != term:
                return False
        return True

    def _empty(self, filled: list[_Slot]) -> None:
        for slot in filled:
            self._terms[slot] = None
        filled.clear()
