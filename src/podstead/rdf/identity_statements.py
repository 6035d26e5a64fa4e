"""Which statements of a document say who its WebIDs are?

A WebID is believed because of what its own document says: which issuers may name it, which keys
are its own, which other names it has. Whoever may write such a document without Control over it
must not be able to change that, or an append would make an owner. So these statements are taken
out of what the document says before and after a write, and compared.

They count where the subject is the document's IRI or a fragment of it; what a document says about
others proves nothing. A key comes with everything said about its node, which mostly has no name,
so nodes without a name are told apart by what is said about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from podstead.core import vocab
from podstead.core.iris import canonical_url
from podstead.rdf.graph import Dataset, Graph
from podstead.rdf.terms import BlankNode, Iri, Object, Subject

KEY_PREDICATES: Final = frozenset(
    Iri(iri) for iri in (vocab.CERT_KEY, *vocab.VERIFICATION_RELATIONSHIPS)
)
"""Statements that name a key, which is described by further statements."""

NAME_PREDICATES: Final = frozenset(
    Iri(iri) for iri in (vocab.OWL_SAME_AS, vocab.SCHEMA_SAME_AS, vocab.SCHEMA_HTTP_SAME_AS)
)
"""Statements that give a further name."""

IDENTITY_PREDICATES: Final = (
    KEY_PREDICATES
    | NAME_PREDICATES
    | {
        Iri(vocab.SOLID_OIDC_ISSUER),
        Iri(vocab.PIM_STORAGE),
    }
)

_NAME_PREDICATES: Final = frozenset(predicate.value for predicate in NAME_PREDICATES)

# Descriptions of keys are one or two nodes deep. What is deeper, or goes in circles, is not
# compared at all: it counts as changed.
_MAX_DEPTH: Final = 8


class _Incomparable:
    """Equal to nothing but itself, so that two sets holding one each always differ."""


@dataclass(frozen=True, slots=True)
class IdentityStatement:
    """One statement of identity; ``object`` and ``description`` do not depend on labels.

    ``description`` stands for all that is said about a key, ``None`` for any other statement.
    """

    webid: str
    predicate: str
    object: str | _Incomparable
    description: str | _Incomparable | None = None


IdentityStatements: TypeAlias = frozenset[IdentityStatement]


def identity_statements(said: Graph | Dataset, *, document_iri: str) -> IdentityStatements:
    """The identity statements of the WebIDs whose document has the IRI (no fragment, no query).

    Two such sets are equal only if the statements are the same but for the labels of blank nodes.
    Of a dataset all graphs count, named ones too: readers differ in whether they tell them apart.
    """
    graph = _merged(said)
    digests = _Digests(graph)
    statements = []
    for subject, predicate, object_ in graph:
        if predicate not in IDENTITY_PREDICATES or not _is_within(subject, document_iri):
            continue
        named_key = predicate in KEY_PREDICATES and isinstance(object_, Iri)
        statements.append(
            IdentityStatement(
                subject.value,
                predicate.value,
                digests.of(object_),
                digests.of_description(object_) if named_key else None,
            )
        )
    return frozenset(statements)


def stated_by_profile(statements: IdentityStatements) -> IdentityStatements:
    """The statements of a document if it is a profile, none if it is none.

    A document that says nothing of its subjects but that other pages are about the same thing, as
    recipes and films do by ``schema:sameAs``, lets nobody act as anybody. What does is a provider,
    a key, a storage, or a name that is a key itself (a DID).
    """
    return statements if any(map(_makes_profile, statements)) else frozenset()


def _makes_profile(statement: IdentityStatement) -> bool:
    if statement.predicate not in _NAME_PREDICATES:
        return True
    object_ = statement.object  # an IRI as in N-Triples; a blank node or a literal is no DID
    return isinstance(object_, str) and object_[:5].lower() == "<did:"


def _merged(said: Graph | Dataset) -> Graph:
    if isinstance(said, Graph):
        return said
    graph = said.default
    for named in said.named.values():
        graph |= named
    return graph


def _is_within(subject: Subject, document_iri: str) -> bool:
    """Whether the document is what one gets for the subject, however its IRI is spelt.

    A query is no part of a resource's identity here (P-51), and escapes and letter case of the
    host do not make another one (P-50): all these WebIDs are this document's.
    """
    if not isinstance(subject, Iri):
        return False
    url = subject.value.partition("#")[0].partition("?")[0]
    return url == document_iri or canonical_url(url) == document_iri


class _Digests:
    """Names terms by what they are, blank nodes by what is said about them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[BlankNode, str | _Incomparable] = {}

    def of(self, term: Object, depth: int = 0) -> str | _Incomparable:
        if not isinstance(term, BlankNode):
            return str(term)
        digest = self._known.get(term)
        if digest is None:
            if depth > _MAX_DEPTH:
                return _Incomparable()
            digest = self._known[term] = self.of_description(term, depth)
        return digest

    def of_description(self, subject: Object, depth: int = 0) -> str | _Incomparable:
        """All that is said about a subject, through blank nodes, as one digest."""
        if not isinstance(subject, Iri | BlankNode):
            return ""
        lines = []
        for predicate, objects in self._graph.about(subject).items():
            for object_ in objects:
                digest = self.of(object_, depth + 1)
                if isinstance(digest, _Incomparable):
                    return digest
                lines.append(f"{predicate} {digest}")
        return sha256("\n".join(sorted(lines)).encode()).hexdigest()
