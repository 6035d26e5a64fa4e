"""Reads and writes what a profile tells people about its owner: name, picture, a few words, links.

Clients read these from statements of two vocabularies, FOAF and vCard, and not all clients from the
same one. Reading therefore accepts either; writing states both. All other statements stay as they
are. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core import vocab
from podstead.rdf.graph import Graph
from podstead.rdf.terms import Iri, Literal, Object, Triple, text_of

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

    def or_else(self, other: ProfileDetails) -> ProfileDetails:
        """These details, with those of another document for what is not stated here."""
        return ProfileDetails(
            self.name or other.name,
            self.picture or other.picture,
            self.note or other.note,
            tuple(dict.fromkeys(self.links + other.links)),
        )


def read_details(graph: Graph, web_id: str) -> ProfileDetails:
    """The details that a document states about a WebID."""
    about = Iri(web_id)

    def texts(*predicates: Iri) -> list[str]:
        objects = (each for one in predicates for each in graph.objects(about, one))
        return [each.value for each in objects if isinstance(each, Literal) and each.value]

    def iris(*predicates: Iri) -> list[str]:
        objects = (each for one in predicates for each in graph.objects(about, one))
        return [each.value for each in objects if isinstance(each, Iri)]

    return ProfileDetails(
        name=next(iter(texts(*_NAMES)), ""),
        picture=next(iter(iris(*_PICTURES)), ""),
        note=next(iter(texts(_NOTE)), ""),
        links=tuple(dict.fromkeys(sorted(iris(*_LINKS)))),
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

    ``further`` are documents that the profile has to name, or must not name. What is stated already
    in one of the accepted ways is not stated differently.
    """
    about = Iri(web_id)
    before = read_details(graph, web_id)
    deletes: list[Triple] = []
    inserts: list[Triple] = []

    def replace(predicates: Sequence[Iri], stated: str, written: Object) -> None:
        """State ``written`` under each predicate, instead of all that was there of its kind."""
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
