"""Writes terms of RDF as words for people."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from podstead.core import vocab
from podstead.previews.vocabulary_labels import prefixed_name, vocabulary_label
from podstead.rdf.graph import Graph
from podstead.rdf.terms import BlankNode, Iri, Literal, Subject

MAX_LITERAL_CHARACTERS: Final = 2_000
MAX_NAME_CHARACTERS: Final = 120

_NAMING: Final = tuple(
    Iri(iri)
    for iri in (
        vocab.FOAF + "name",
        vocab.VCARD + "fn",
        vocab.SCHEMA + "name",
        vocab.SCHEMA_HTTP + "name",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        vocab.RDFS + "label",
        vocab.DCTERMS_TITLE,
        "http://purl.org/dc/elements/1.1/title",
        vocab.AS + "name",
        "http://www.w3.org/2002/12/cal/ical#summary",
    )
)
"""The properties that name their subject, the first that is present wins."""

_ANONYMOUS: Final = frozenset({"me", "this", "it", "i", "id", "card"})
"""Fragments for the thing that a document is about; the document's own name says more."""


def name_in(graph: Graph, subject: Subject, language: str) -> str | None:
    """The name that the document itself gives to a subject, in the reader's language if
    possible."""
    description = graph.about(subject)
    for predicate in _NAMING:
        names = [name for name in description.get(predicate, ()) if isinstance(name, Literal)]
        if names:
            chosen = min(names, key=lambda name: _preference(name, language))
            text = " ".join(chosen.value.split())
            if text:
                return shortened(text, MAX_NAME_CHARACTERS)
    return None


def _preference(name: Literal, language: str) -> int:
    tag = (name.language or "").partition("-")[0]
    return (language, "", "en").index(tag) if tag in (language, "", "en") else 3


def name_of_iri(iri: str, language: str) -> str:
    """A term of a known vocabulary in words, and otherwise the telling part of an IRI."""
    return vocabulary_label(iri, language) or telling_part(iri)


def telling_part(iri: str) -> str:
    """The fragment or last segment of an IRI, by which people recognise it."""
    fragment = iri.rpartition("#")[2] if "#" in iri else ""
    if fragment and fragment not in _ANONYMOUS:
        return shortened(_readable(fragment), MAX_NAME_CHARACTERS)
    rest = iri.partition("#")[0].rstrip("/")
    scheme, separator, after = rest.partition("://")
    if not separator:
        for scheme in ("mailto:", "tel:"):
            iri = iri.removeprefix(scheme)
        return shortened(iri, MAX_NAME_CHARACTERS)
    last = after.rpartition("/")[2]
    return shortened(_readable(last) or scheme, MAX_NAME_CHARACTERS)


def _readable(segment: str) -> str:
    """The segment decoded, unless that would hide what it is."""
    try:
        decoded = unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return segment
    return decoded if decoded.isprintable() else segment


def term_text(iri: str) -> str:
    """An IRI as a table of statements shows it."""
    return shortened(prefixed_name(iri) or iri, MAX_LITERAL_CHARACTERS)


def subject_text(subject: Subject) -> str:
    """A subject as a table of statements shows it."""
    return f"_:{subject.value[:40]}" if isinstance(subject, BlankNode) else term_text(subject.value)


def shortened(text: str, characters: int) -> str:
    """The beginning of a text, with an ellipsis if there is more."""
    return text if len(text) <= characters else text[: characters - 1] + "…"
