"""Features of RDF 1.2 that the RDF library supports but parsers for RDF 1.1 do not.

One is the base direction of literals. JSON-LD 1.1 has it, but the other syntaxes only in drafts,
and one such literal makes an entire Turtle document invalid for an RDF 1.1 parser. Therefore
directions are accepted and written in JSON-LD only, and omitted in other formats, as JSON-LD itself
does by default (JSON-LD 1.1 API, section 8.2.2). In other syntaxes they are refused, and so is the
directive that declares a document to be RDF 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from podstead.core.media_types import JSON_LD, RDF_XML, TRIG, TURTLE
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.graph import Dataset, Graph
from podstead.rdf.lexing import Lexer, TokenKind, line_of
from podstead.rdf.terms import Literal, Quad, TripleTerm

TRIPLE_TERMS: Final = "RDF 1.2 triple terms are not supported"
DIRECTIONS: Final = "RDF 1.2 base directions are accepted in JSON-LD only"
VERSIONS: Final = "RDF 1.2 version directives are not supported"

# What every document with a triple term contains, in the Turtle family: the term itself, or one of
# the abbreviations for statements about a triple.
_MARKS_OF_TRIPLE_TERMS: Final = (b"<<", b"{|", b"~")
# What every document with a direction contains, in the Turtle family and in RDF/XML.
_MARKS_OF_DIRECTIONS: Final = (b"--lt", b"--rt", b"dir")
# Searched in lower case. May have false positives, which the lexer rejects, but misses nothing.
_MAYBE_VERSION: Final = re.compile(rb"version\s*[\"'#]")
_VERSION_LINE: Final = re.compile(rb"\s*@?version\s*[\"']", re.IGNORECASE)
_ABOUT_DIRECTIONS: Final = re.compile(r"dirLangString|base direction")


def check_read(content: bytes, media_type: str, quads: Iterable[Quad]) -> None:
    """Refuse RDF 1.2 features in a parsed document; ``quads`` are those of ``content``.

    Searches the bytes first, which takes a few thousandths of the time for parsing them. JSON-LD
    has no triple terms. Raises MalformedRdf.
    """
    if media_type == JSON_LD:
        return
    if media_type == RDF_XML or _has_any(_MARKS_OF_TRIPLE_TERMS, content):
        _check_no_triple_terms(media_type, quads)
    if _has_any(_MARKS_OF_DIRECTIONS, content) and any(_is_directed(each.object) for each in quads):
        raise MalformedRdf(media_type, DIRECTIONS)
    if media_type in (TURTLE, TRIG):
        lowered = content.lower()
        # Most documents lack even the word, whose search is much faster than the expression's.
        if b"version" in lowered and _MAYBE_VERSION.search(lowered):
            _check_version(content.decode(), media_type)


def _has_any(marks: tuple[bytes, bytes, bytes], content: bytes) -> bool:
    # Three searches take a fraction of the time of one for a regular expression.
    one, two, three = marks
    return one in content or two in content or three in content


def _check_no_triple_terms(media_type: str, quads: Iterable[Quad]) -> None:
    for quad in quads:
        if isinstance(quad.subject, TripleTerm) or isinstance(quad.object, TripleTerm):
            raise MalformedRdf(media_type, TRIPLE_TERMS)


def _check_version(text: str, media_type: str) -> None:
    lexer = Lexer(text, media_type)
    before, token = None, lexer.next()
    while token is not None:
        if (
            before is not None
            and before.text.lower() in ("version", "@version")
            and token.kind is TokenKind.STRING
        ):
            raise MalformedRdf(media_type, VERSIONS, line=line_of(text, before.start))
        before, token = token, lexer.next()


def reason_of(reason: str, content: bytes, line: int | None) -> str:
    """The reason why parsing failed: that of the parser, unless the cause is RDF 1.2."""
    if _ABOUT_DIRECTIONS.search(reason):
        return DIRECTIONS
    lines = content.split(b"\n", line)[line - 1 : line] if line else []
    return VERSIONS if lines and _VERSION_LINE.match(lines[0]) else reason


def without_directions(dataset: Dataset) -> Dataset:
    """Remove the base directions of literals, which keep their languages."""
    named = {name: _undirected(graph) for name, graph in dataset.named.items()}
    return Dataset(_undirected(dataset.default), MappingProxyType(named))


def _undirected(graph: Graph) -> Graph:
    if not any(_is_directed(object_) for _, _, object_ in graph):
        return graph
    return Graph(
        (
            subject,
            predicate,
            Literal(object_.value, language=object_.language)
            if isinstance(object_, Literal) and object_.direction is not None
            else object_,
        )
        for subject, predicate, object_ in graph
    )


def _is_directed(term: object) -> bool:
    return isinstance(term, Literal) and term.direction is not None
