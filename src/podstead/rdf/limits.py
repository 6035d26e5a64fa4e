"""Limits for RDF documents.

The library's parsers recurse on some structures (JSON-LD nodes, triple terms), so that a few
hundred kilobytes of brackets could overflow the stack of the process. Other input expands (entities
in RDF/XML) or takes quadratic time (deep XML, large JSON-LD contexts that are activated often).
Therefore everything except the number of triples is checked before the library parses the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.media_types import RDF_XML
from podstead.rdf.codes import RdfCodes
from podstead.rdf.errors import RdfTooComplex, RdfTooLarge
from podstead.rdf.xml_text import check_xml

MAX_DEPTH_LEVELS = 100
"""How deep objects and arrays (JSON-LD), definitions of a context that refer to one another, or
elements (RDF/XML) may be nested. Each level uses parser stack: with a stack of 1 MiB, the JSON-LD
parser overflowed at 360. Documents written by people have fewer than 20."""

MAX_TRIPLES = 100_000
"""About the number in four MiB of ordinary Turtle."""

MAX_CONTEXT_WORK = 5_000_000
"""The maximum work of JSON-LD contexts; the unit is what the parser takes to copy one definition of
a term, 130 ns (``jsonld_cost``)."""

DEFINITION_WORK = 16
"""The work of one definition in these units."""

MAX_EXPANDED_BYTES = 64 * 1024 * 1024
"""The maximum size of a document with all names written in full, if one of them is very long.
100,000 triples of ordinary documents take 10 to 30 MiB."""


@dataclass(frozen=True, slots=True)
class RdfLimits:
    """What one RDF document may cost."""

    max_bytes: int = 8 * 1024 * 1024
    max_depth: int = MAX_DEPTH_LEVELS
    max_triples: int = MAX_TRIPLES
    max_context_work: int = MAX_CONTEXT_WORK
    max_expanded_bytes: int = MAX_EXPANDED_BYTES

    @property
    def max_context_terms(self) -> int:
        """How many terms contexts can define if they take effect once."""
        return self.max_context_work // DEFINITION_WORK


DEFAULT_LIMITS = RdfLimits()

# The Turtle parser frees nested triple terms by recursion; 4,000 fit on a stack of 2 MiB. Triple
# terms are refused after parsing, but this many are refused before, wherever they occur.
_TRIPLE_TERM = b"<<("
_MAX_TRIPLE_TERMS = 1000


def check_size(content: bytes, limits: RdfLimits) -> None:
    """Raise RdfTooLarge if the content has too many bytes."""
    if len(content) > limits.max_bytes:
        raise RdfTooLarge(RdfCodes.TOO_MANY_BYTES, limit_bytes=limits.max_bytes)


def check_complexity(content: bytes, media_type: str, limits: RdfLimits) -> None:
    """Refuse UTF-8 content that could harm the parser for its type.

    JSON-LD is checked when it is decoded (``jsonld_reader``). Raises RdfTooComplex, and
    MalformedRdf for RDF/XML that is not well-formed XML.
    """
    if media_type == RDF_XML:
        check_xml(content, max_depth=limits.max_depth, max_bytes=limits.max_bytes)
    elif content.count(_TRIPLE_TERM) > _MAX_TRIPLE_TERMS:
        raise RdfTooComplex(media_type, "RDF 1.2 triple terms are not supported")
