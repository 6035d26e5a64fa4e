"""Checking XML before it is parsed as RDF/XML.

The RDF/XML parser takes quadratic time in the nesting depth, and expands entities that a document
declares, by which a kilobyte can grow to gigabytes. A plain XML parser, which does neither, checks
a document first.
"""

from __future__ import annotations

from xml.parsers import expat

from podstead.core.media_types import RDF_XML
from podstead.rdf.errors import MalformedRdf, RdfTooComplex


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
