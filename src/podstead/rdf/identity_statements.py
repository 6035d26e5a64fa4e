"""What profiles state: who can act as their owner, and what people read about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from podstead.core import vocab
from podstead.core.identifiers import canonical_url
from podstead.rdf.graph import (
    BlankNode,
    Dataset,
    Graph,
    Iri,
    Literal,
    Object,
    Subject,
    Triple,
    text_of,
)

# Extracting and comparing the statements of identity in a document.
#
# Authentication trusts what the document of a WebID states: its issuers, its keys and its other
# names. An agent that may write the document but has no Control must not be able to change these
# statements; otherwise Append would be enough to become the owner. The statements before and after
# a write are therefore extracted and compared.
#
# Only statements whose subject is the document's IRI or a fragment of it are relevant, because a
# document proves nothing about others. A key includes everything stated about its node. The node is
# usually blank, so blank nodes are identified by their descriptions.

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


# Reads and writes what a profile tells people about its owner: name, picture, a few words, links.
#
# Clients read these from statements of two vocabularies, FOAF and vCard, and not all clients from
# the same one. Reading therefore accepts either; writing states both. All other statements stay as
# they are. Pure.

_NAMES: Final = (Iri(vocab.FOAF_NAME), Iri(vocab.VCARD_FN))
_PICTURES: Final = (Iri(vocab.VCARD_HAS_PHOTO), Iri(vocab.FOAF_IMG))
_NOTE: Final = Iri(vocab.VCARD_NOTE)
_HOMEPAGE: Final = Iri(vocab.FOAF_HOMEPAGE)
_LINKS: Final = (_HOMEPAGE, Iri(vocab.VCARD_URL))
_SEE_ALSO: Final = Iri(vocab.RDFS_SEE_ALSO)


@dataclass(frozen=True, slots=True)
class ProfileDetails:
    """The details of one person; empty where nothing is stated."""

    name: str = ""
    picture: str = ""
    """The IRI of the picture."""
    note: str = ""
    links: tuple[str, ...] = ()

    def or_else(self, other: "ProfileDetails") -> "ProfileDetails":
        """These details, completed with those of another document."""
        return ProfileDetails(
            self.name or other.name,
            self.picture or other.picture,
            self.note or other.note,
            tuple(dict.fromkeys(self.links + other.links)),
        )


def read_details(graph: Graph, web_id: str) -> ProfileDetails:
    """The details that a document states about a WebID."""
    about = Iri(web_id)
    return ProfileDetails(
        name=next(filter(None, graph.literals(about, *_NAMES)), ""),
        picture=next(iter(graph.iris(about, *_PICTURES)), ""),
        note=next(filter(None, graph.literals(about, _NOTE)), ""),
        links=tuple(dict.fromkeys(sorted(graph.iris(about, *_LINKS)))),
    )


def names_further_document(graph: Graph, web_id: str, document: str) -> bool:
    """Whether the profile names a further document about its owner."""
    return Iri(document) in graph.objects(Iri(web_id), _SEE_ALSO)


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """The statements to remove from a document and to add to it."""

    deletes: tuple[Triple, ...]
    inserts: tuple[Triple, ...]

    @property
    def is_empty(self) -> bool:
        return not self.deletes and not self.inserts

    def as_patch(self) -> bytes:
        """The difference as an N3 Patch (Solid Protocol section 5.3.1)."""
        parts = [
            f"solid:{word} {{ {' '.join(f'{text_of(triple)} .' for triple in triples)} }}"
            for word, triples in (("deletes", self.deletes), ("inserts", self.inserts))
            if triples
        ]
        patch = "; ".join(["_:patch a solid:InsertDeletePatch", *parts])
        return f"@prefix solid: <{vocab.SOLID}>.\n{patch}.\n".encode()


def difference(
    graph: Graph, web_id: str, wanted: ProfileDetails, *, further: Sequence[tuple[str, bool]] = ()
) -> ProfileChange:
    """How a document has to change to state these details and no others.

    ``further`` are documents that the profile has to name, or must not name. Statements that are
    already there in one of the accepted forms are not changed.
    """
    about = Iri(web_id)
    before = read_details(graph, web_id)
    deletes: list[Triple] = []
    inserts: list[Triple] = []

    def replace(predicates: Sequence[Iri], stated: str, written: Object) -> None:
        """State ``written`` under each predicate, in place of the earlier statements of that
        kind."""
        for predicate in predicates:
            there = [
                each
                for each in graph.objects(about, predicate)
                if isinstance(each, Iri if isinstance(written, Iri) else Literal)
            ]
            if stated and stated in (each.value for each in there):
                continue  # perhaps in a language
            deletes.extend((about, predicate, each) for each in there)
            if stated:
                inserts.append((about, predicate, written))

    replace(_NAMES, wanted.name, Literal(wanted.name))
    replace(_PICTURES, wanted.picture, Iri(wanted.picture or web_id))
    replace([_NOTE], wanted.note, Literal(wanted.note))
    for predicate in _LINKS:
        deletes.extend(
            (about, predicate, each)
            for each in graph.objects(about, predicate)
            if isinstance(each, Iri) and each.value not in wanted.links
        )
    inserts.extend(
        (about, _HOMEPAGE, Iri(each)) for each in wanted.links if each not in before.links
    )
    for document, is_named in further:
        triple = (about, _SEE_ALSO, Iri(document))
        if is_named and triple not in graph:
            inserts.append(triple)
        if not is_named and triple in graph:
            deletes.append(triple)
    return ProfileChange(tuple(deletes), tuple(inserts))
