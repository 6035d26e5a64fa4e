"""What is a triple pattern, and how is one read by a parser that knows no variables?

A pattern is a triple in which variables may stand. For the parser each variable is written as an
IRI that nobody else can write, and made a variable again in what it read: the IRI is made of a
digest of the whole text, which no text can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from podstead.rdf.codecs import Document
from podstead.rdf.errors import MalformedRdf, RdfTooLarge
from podstead.rdf.graph import Graph
from podstead.rdf.limits import RdfLimits
from podstead.rdf.terms import BlankNode, Iri, Literal, Object


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable by its name, without ``?`` or ``$``."""

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
    """Whether the pattern is a triple without variables and blank nodes."""
    return not any(isinstance(term, (Variable, BlankNode)) for term in pattern)


class VariablePlaceholders:
    """Writes the variables of one text as IRIs, and finds them again in what was read."""

    __slots__ = ("_media_type", "_prefix", "_variables_left")

    def __init__(self, text: str, media_type: str, limits: RdfLimits) -> None:
        self._prefix = f"urn:{sha256(text.encode()).hexdigest()[:24]}:"
        self._media_type = media_type
        # More cannot stand in as many triples as are accepted; each makes the text longer.
        self._variables_left = 3 * limits.max_triples

    def iri(self, name: str) -> str:
        """What is written in the place of a variable (or, with an empty name, of nothing).

        Raises RdfTooLarge for more of them than fit into a document.
        """
        self._variables_left -= 1
        if self._variables_left < 0:
            raise RdfTooLarge("The patch contains more variables than a document can have terms")
        return f"<{self._prefix}{name}>"

    def declaration(self) -> str:
        """What is written in the place of ``@forAll``: the IRIs after it become variables."""
        return f"{self.iri('')} {self.iri(_DECLARES.name)}"

    def declared(self, graph: Graph) -> frozenset[Iri]:
        """The IRIs that a graph declares to be variables. Raises MalformedRdf for another term."""
        subject, predicate = Iri(self._prefix), Iri(self._prefix + _DECLARES.name)
        found: set[Iri] = set()
        for term in graph.objects(subject, predicate):
            if not isinstance(term, Iri) or self.is_variable(term):
                raise MalformedRdf(self._media_type, "what is declared a variable is no IRI")
            found.add(term)
        return frozenset(found)

    def is_variable(self, term: Object) -> bool:
        """Whether a term that was read is one of the text's variables."""
        return isinstance(term, Iri) and term.value.startswith(self._prefix)

    def patterns(self, graph: Graph, declared: AbstractSet[Iri] = frozenset()) -> Patterns:
        """The patterns that were read, with their variables, also those that are ``declared``.

        Raises MalformedRdf for a variable where no term of a triple can be one.
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
                raise MalformedRdf(self._media_type, "a variable stands where a datatype belongs")
        elif isinstance(term, Iri):
            if term.value.startswith(self._prefix):
                return Variable(term.value.removeprefix(self._prefix))
            if term in declared:
                return Variable(term.value)
        return term

    def check(self, document: Document) -> None:
        """Refuse a variable that was given as a base or a namespace (MalformedRdf)."""
        namespaces = [document.base_iri or "", *document.prefixes.values()]
        if any(namespace.startswith(self._prefix) for namespace in namespaces):
            raise MalformedRdf(self._media_type, "a variable stands where a namespace belongs")

    def renamed(self, error: MalformedRdf) -> MalformedRdf:
        """A parser's error in the words of the sender: about this type, with its variables."""
        reason = error.reason.replace(f"<{self._prefix}>", "").replace(self._prefix, "?")
        return type(error)(self._media_type, reason, line=error.line)


# No variable of a text has these names.
_FILLER = Variable("")
_DECLARES = Variable("/declares")
