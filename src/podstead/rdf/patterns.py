"""Triple patterns, and how to parse them with a parser that does not support variables.

A pattern is a triple that can contain variables. Before parsing, each variable is replaced with a
placeholder IRI, which is turned into a variable again afterwards. The IRI contains a digest of the
entire text, so the text itself cannot contain such an IRI.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import TypeAlias

from podstead.core.value import Value
from podstead.rdf.codecs import Document
from podstead.rdf.errors import MalformedRdf, RdfTooLarge
from podstead.rdf.graph import Graph
from podstead.rdf.limits import RdfLimits
from podstead.rdf.terms import BlankNode, Iri, Literal, Object, Triple


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
