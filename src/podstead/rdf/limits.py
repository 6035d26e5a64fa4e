"""How large and how deep may an RDF document be?

The parsers below recurse on some structures (JSON-LD nodes, triple terms), where a few hundred
kilobytes of brackets would overflow the stack of the whole process; others make much out of little
(entities of RDF/XML) or take quadratic time (deep XML, large JSON-LD contexts put in force often).
So everything but the number of triples is checked before the library sees the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.media_types import RDF_XML
from podstead.rdf.errors import RdfTooComplex, RdfTooLarge
from podstead.rdf.xml_text import check_xml

MAX_DEPTH_LEVELS = 100
"""How deep objects and arrays (JSON-LD), definitions of a context that refer to one another, or
elements (RDF/XML) may be nested. Each level uses parser stack: with a stack of 1 MiB, the JSON-LD
parser overflowed at 360. Documents written by people have fewer than 20."""

MAX_TRIPLES = 100_000
"""About as many as four MiB of ordinary Turtle contain."""

MAX_CONTEXT_WORK = 5_000_000
"""The number of terms that JSON-LD contexts define, times how often a context takes effect. The
parser needs 100 ns for each."""


@dataclass(frozen=True, slots=True)
class RdfLimits:
    """What one RDF document may cost."""

    max_bytes: int = 8 * 1024 * 1024
    max_depth: int = MAX_DEPTH_LEVELS
    max_triples: int = MAX_TRIPLES
    max_context_work: int = MAX_CONTEXT_WORK


DEFAULT_LIMITS = RdfLimits()

# The Turtle family's parser drops nested triple terms by recursion: 4,000 fit a stack of 2 MiB.
# They are refused after parsing; so many are refused before, wherever in the text they stand.
_TRIPLE_TERM = b"<<("
_MAX_TRIPLE_TERMS = 1000


def check_size(content: bytes, limits: RdfLimits) -> None:
    """Raises RdfTooLarge."""
    if len(content) > limits.max_bytes:
        raise RdfTooLarge(f"An RDF document can have at most {limits.max_bytes} bytes")


def check_complexity(content: bytes, media_type: str, limits: RdfLimits) -> None:
    """Refuse bytes, in UTF-8, that the parser of their type must not see.

    JSON-LD is checked where it is decoded (``jsonld_reader``). Raises RdfTooComplex, or
    MalformedRdf for RDF/XML that is no well-formed XML.
    """
    if media_type == RDF_XML:
        check_xml(content, max_depth=limits.max_depth, max_bytes=limits.max_bytes)
    elif content.count(_TRIPLE_TERM) > _MAX_TRIPLE_TERMS:
        raise RdfTooComplex(media_type, "RDF 1.2 triple terms are not supported")
