"""Is this XML, and could it do harm to read it as RDF/XML?

The parser of RDF/XML takes time with the square of the depth, and expands the entities that a
document declares for itself, which lets a kilobyte grow to gigabytes. So a plain XML parser, which
does neither, looks at a document first.
"""

from __future__ import annotations

from xml.parsers import expat

from podstead.core.media_types import RDF_XML
from podstead.rdf.errors import MalformedRdf, RdfTooComplex


def check_xml(content: bytes, *, max_depth: int, max_bytes: int) -> None:
    """Refuse what is no XML (MalformedRdf), nests deeper than ``max_depth`` elements, or could grow
    beyond ``max_bytes`` by its entities (RdfTooComplex)."""
    _XmlCheck(content, max_depth, max_bytes).run()


def is_namespace_well_formed(content: bytes) -> bool:
    """Whether every XML parser with namespaces would read the document."""
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
        # Named here, or else Python would look up whatever encoding the document names for itself;
        # the parser of RDF/XML refuses all but UTF-8.
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.EntityDeclHandler = self._declare_entity
        try:
            parser.Parse(self._content, True)  # noqa: FBT003 - the library's positional argument
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            raise MalformedRdf(RDF_XML, reason, line=error.lineno) from error

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
        # A reference within an entity's value is what lets a kilobyte grow exponentially.
        if value is None or "&" in value or "%" in value:
            raise RdfTooComplex(RDF_XML, "an entity is external or refers to another one")
        grown_bytes = self._content.count(b"&") * len(value.encode())
        if grown_bytes > self._max_bytes:
            raise RdfTooComplex(RDF_XML, "its entities make more text than is accepted")
