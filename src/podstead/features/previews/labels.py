"""Writes terms of RDF as words for people: those of well-known vocabularies in the languages of the
pages, others by their names in the document or the last part of their IRIs. Pure."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from podstead.core import vocab
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Subject

_LANGUAGES: Final = ("en", "de", "es", "nl")

_NAMESPACES: Final = MappingProxyType(
    {
        "rdf": vocab.RDF,
        "rdfs": vocab.RDFS,
        "owl": vocab.OWL,
        "skos": "http://www.w3.org/2004/02/skos/core#",
        "dcterms": vocab.DCTERMS,
        "dc": "http://purl.org/dc/elements/1.1/",
        "foaf": vocab.FOAF,
        "vcard": vocab.VCARD,
        "schema": vocab.SCHEMA,
        "schema-http": vocab.SCHEMA_HTTP,
        "ldp": vocab.LDP,
        "acl": vocab.ACL,
        "solid": vocab.SOLID,
        "pim": vocab.PIM,
        "as": vocab.AS,
        "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "stat": vocab.STAT,
        "cert": vocab.CERT,
        "bookmark": "http://www.w3.org/2002/01/bookmark#",
        "cal": "http://www.w3.org/2002/12/cal/ical#",
        "sioc": "http://rdfs.org/sioc/ns#",
        "wf": "http://www.w3.org/2005/01/wf/flow#",
        "meeting": "http://www.w3.org/ns/pim/meeting#",
        "ui": "http://www.w3.org/ns/ui#",
        "oidc": vocab.OIDC,
    }
)

_LABELS: Final = files("podstead.features.previews").joinpath("labels.txt").read_text("utf-8")
"""One line for each term: its name, then English, German, Spanish and Dutch. Read when the module
is loaded, as part of the program."""


def vocabulary_label(iri: str, language: str = "en") -> str | None:
    """The name of a term in a language of the pages, English in any other; ``None`` if unknown."""
    labels = _table().get(iri)
    if labels is None:
        return None
    return labels[_LANGUAGES.index(language) if language in _LANGUAGES else 0]


@cache
def _table() -> Mapping[str, tuple[str, ...]]:
    table = {}
    for line in _LABELS.splitlines():
        name, *labels = line.split("|")
        prefix, _, local = name.partition(":")
        table[_NAMESPACES[prefix] + local] = tuple(labels)
        if prefix == "schema":  # both spellings are in use
            table[_NAMESPACES["schema-http"] + local] = tuple(labels)
    return MappingProxyType(table)


def prefixed_name(iri: str) -> str | None:
    """The customary short form of a term of a well-known vocabulary, such as ``foaf:name``."""
    for prefix, namespace in _NAMESPACES.items():
        if iri.startswith(namespace):
            return f"{prefix.removesuffix('-http')}:{iri[len(namespace) :]}"
    return None


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
    return vocabulary_label(iri, language) or last_segment(iri)


def last_segment(iri: str) -> str:
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
