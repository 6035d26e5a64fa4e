"""Limits for RDF documents.

The library's parsers recurse on some structures (JSON-LD nodes, triple terms), so that a few
hundred kilobytes of brackets could overflow the stack of the process. Other input expands (entities
in RDF/XML) or takes quadratic time (deep XML, large JSON-LD contexts that are activated often).
Therefore everything except the number of triples is checked before the library parses the bytes.
"""

from dataclasses import dataclass
from xml.parsers import expat

from podstead.core.media_types import RDF_XML
from podstead.rdf.codes import RdfCodes
from podstead.rdf.errors import MalformedRdf, RdfTooComplex, RdfTooLarge

# Checking XML before it is parsed as RDF/XML.
#
# The RDF/XML parser takes quadratic time in the nesting depth, and expands entities that a document
# declares, by which a kilobyte can grow to gigabytes. A plain XML parser, which does neither,
# checks a document first.


def check_xml(content: bytes, *, max_depth: int, max_bytes: int) -> None:
    """Refuse a document that is not XML (MalformedRdf), is nested deeper than ``max_depth``, or can
    grow beyond ``max_bytes`` through its entities (RdfTooComplex)."""
    _XmlCheck(content, max_depth, max_bytes).run()


def is_namespace_well_formed(content: bytes) -> bool:
    """Whether the document is well-formed for XML parsers with namespaces."""
    try:
        expat.ParserCreate("utf-8", " ").Parse(content, True)  # noqa: FBT003
    except expat.ExpatError:
        return False
    return True


class _XmlCheck:
    def __init__(self, content: bytes, max_depth: int, max_bytes: int) -> None:
        self._content = content
        self._max_depth = max_depth
        self._max_bytes = max_bytes
        self._depth = 0

    def run(self) -> None:
        # The encoding is fixed, because otherwise Python would look up the one that the document
        # declares; the RDF/XML parser accepts only UTF-8.
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.EntityDeclHandler = self._declare_entity
        try:
            parser.Parse(self._content, True)  # noqa: FBT003 - the library's positional argument
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            column = error.offset + 1
            raise MalformedRdf(RDF_XML, reason, line=error.lineno, column=column) from error

    def _start(self, _name: str, _attributes: object) -> None:
        self._depth += 1
        if self._depth > self._max_depth:
            raise RdfTooComplex(RDF_XML, f"more than {self._max_depth} nested elements")

    def _end(self, _name: str) -> None:
        self._depth -= 1

    def _declare_entity(
        self,
        _name: str,
        _is_parameter_entity: bool,  # noqa: FBT001 - the signature is the library's
        value: str | None,
        *_external: str | None,
    ) -> None:
        # References within the value of an entity would allow exponential growth.
        if value is None or "&" in value or "%" in value:
            raise RdfTooComplex(RDF_XML, "an entity is external or refers to another entity")
        grown_bytes = self._content.count(b"&") * len(value.encode())
        if grown_bytes > self._max_bytes:
            raise RdfTooComplex(RDF_XML, "its entities expand to more text than is allowed")


MAX_DEPTH_LEVELS = 100
"""How deep objects and arrays (JSON-LD), definitions of a context that refer to one another, or
elements (RDF/XML) may be nested. Each level uses parser stack: with a stack of 1 MiB, the JSON-LD
parser overflowed at 360. Documents written by people have fewer than 20."""

MAX_TRIPLES = 100_000
"""About the number in four MiB of ordinary Turtle."""

MAX_CONTEXT_WORK = 5_000_000
"""The maximum work of JSON-LD contexts; the unit is what the parser takes to copy one definition of
a term, 130 ns (``jsonld_reader``)."""

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
