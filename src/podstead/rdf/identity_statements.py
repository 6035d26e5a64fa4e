"""Extracting and comparing the statements of identity in a document.

Authentication trusts what the document of a WebID states: its issuers, its keys and its other
names. An agent that may write the document but has no Control must not be able to change these
statements; otherwise Append would be enough to become the owner. The statements before and after a
write are therefore extracted and compared.

Only statements whose subject is the document's IRI or a fragment of it are relevant, because a
document proves nothing about others. A key includes everything stated about its node. The node is
usually blank, so blank nodes are identified by their descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from podstead.core import vocab
from podstead.core.identifiers import canonical_url
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

# Descriptions of keys are one or two nodes deep. Deeper or cyclic ones are not compared but treated
# as changed.
_MAX_DEPTH: Final = 8


class _Incomparable:
    """Equal to itself only, so that two sets with one each always differ."""


@dataclass(frozen=True, slots=True)
class IdentityStatement:
    """One statement of identity; ``object`` and ``description`` do not depend on labels.

    ``description`` represents everything stated about a key; it is ``None`` for other statements.
    """

    webid: str
    predicate: str
    object: str | _Incomparable
    description: str | _Incomparable | None = None


IdentityStatements: TypeAlias = frozenset[IdentityStatement]


def identity_statements(said: Graph | Dataset, *, document_iri: str) -> IdentityStatements:
    """The statements of identity for the WebIDs of the document with this IRI (without fragment and
    query).

    Two results are equal only if the statements are equal up to the labels of blank nodes. Named
    graphs are included, because some readers do not distinguish them from the default graph.
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
    """The statements if the document is a profile, otherwise none.

    A document that only links its subjects to other pages, as recipes and films do with
    ``schema:sameAs``, does not let anybody act as a WebID. A profile states a provider, a key, a
    storage, or a name that is itself a key (a DID).
    """
    return statements if any(map(_makes_profile, statements)) else frozenset()


def _makes_profile(statement: IdentityStatement) -> bool:
    if statement.predicate not in _NAME_PREDICATES:
        return True
    object_ = statement.object  # an IRI as in N-Triples; blank nodes and literals are not DIDs
    return isinstance(object_, str) and object_[:5].lower() == "<did:"


def _merged(said: Graph | Dataset) -> Graph:
    if isinstance(said, Graph):
        return said
    graph = said.default
    for named in said.named.values():
        graph |= named
    return graph


def _is_within(subject: Subject, document_iri: str) -> bool:
    """Whether dereferencing the subject returns the document.

    The query is not part of a resource's identity here (P-51), and neither are the spelling of
    escapes and the letter case of the host (P-50).
    """
    if not isinstance(subject, Iri):
        return False
    url = subject.value.partition("#")[0].partition("?")[0]
    return url == document_iri or canonical_url(url) == document_iri


class _Digests:
    """Identifies terms by their values, and blank nodes by their descriptions."""

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
        """The digest of everything stated about a subject, following blank nodes."""
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
