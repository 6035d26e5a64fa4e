"""Triple patterns, and how to parse them with a parser that does not support variables.

A pattern is a triple that can contain variables. Before parsing, each variable is replaced with a
placeholder IRI, which is turned into a variable again afterwards. The IRI contains a digest of the
entire text, so the text itself cannot contain such an IRI.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from podstead.core.value import Value
from podstead.rdf.codecs import Document
from podstead.rdf.errors import MalformedRdf, PatchTooCostly, RdfTooLarge
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Object, Triple
from podstead.rdf.limits import RdfLimits


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
            raise RdfTooLarge("The patch contains more variables than a document can have terms")
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
                raise MalformedRdf(self._media_type, "only IRIs can be declared as variables")
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
                raise MalformedRdf(self._media_type, "a statement has too few terms")
            yield subject, predicate, object_

    def _term(self, term: Object, declared: AbstractSet[Iri]) -> PatternTerm:
        if isinstance(term, Literal):
            if term.datatype.value.startswith(self._prefix):
                raise MalformedRdf(self._media_type, "a variable cannot be a datatype")
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
            raise MalformedRdf(self._media_type, "a variable cannot be a namespace")

    def renamed(self, error: MalformedRdf) -> MalformedRdf:
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
            raise PatchTooCostly("The conditions of the patch take too many steps to evaluate")


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
