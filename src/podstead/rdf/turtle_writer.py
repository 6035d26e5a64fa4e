"""Serializing a graph as readable Turtle (RDF 1.1 Turtle, W3C Recommendation).

Only prefixes in use are declared. There is one paragraph per subject, with the type first; blank
nodes and lists are nested, IRIs in the document's container are relative, numbers and booleans are
unquoted, and multi-line strings use long quotes. The output is deterministic.

The objects of ``acl:agent`` are always full IRIs, because clients search ACLs for a WebID (R-14).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from podstead.core import vocab
from podstead.rdf.graph import Description, Graph
from podstead.rdf.iris import PrefixTable, RelativeReferences
from podstead.rdf.labels import BlankNodeLabels
from podstead.rdf.nesting import NIL, Nesting
from podstead.rdf.terms import BlankNode, Iri, Object, Subject

_TYPE = Iri(vocab.RDF_TYPE)
_AGENT = Iri(vocab.ACL_AGENT)

# Literals that are written unquoted, in canonical form only (XML Schema 1.1 Part 2): some parsers
# convert them to numbers and return another form of the same value. Doubles are never safe.
_BARE = {
    vocab.XSD_INTEGER: re.compile(r"(?:0|-?[1-9][0-9]*)\Z"),
    vocab.XSD_DECIMAL: re.compile(r"(?!-0\.0\Z)-?(?:0|[1-9][0-9]*)\.(?:0|[0-9]{0,5}[1-9])\Z"),
    vocab.XSD_BOOLEAN: re.compile(r"(?:true|false)\Z"),
}
_ESCAPED_IN_LONG_STRING = re.compile(r'[\\\r\x00-\x08\x0b-\x1f\x7f]|"(?="")|"(?="\Z)|"\Z')
_INDENT = "    "


def write_turtle(graph: Graph, prefixes: Mapping[str, str], *, base_iri: str | None) -> bytes:
    """Serialize the graph as Turtle in UTF-8; ``prefixes`` are the document's own."""
    return TurtleWriter(graph, prefixes, base_iri=base_iri).text().encode()


class TurtleWriter:
    """Serializes one graph, once."""

    __slots__ = ("_iris", "_labels", "_nesting", "_prefixes", "_references")

    def __init__(self, graph: Graph, prefixes: Mapping[str, str], *, base_iri: str | None) -> None:
        self._prefixes = PrefixTable(prefixes, empty=True)
        self._references = RelativeReferences(base_iri)
        self._labels = BlankNodeLabels()
        self._nesting = Nesting(graph)
        self._iris: dict[Iri, str] = {}

    def text(self) -> str:
        """The document, declaring the prefixes that it and ``name`` have used so far."""
        paragraphs = [
            f"{self._subject(subject)} {self._statements(description, 0)} .\n"
            for subject, description in self._nesting.roots()
        ]
        header = [
            f"@prefix {prefix}: <{namespace}> .\n"
            for prefix, namespace in sorted(self._prefixes.used.items())
        ]
        return "".join(header) + ("\n" if header else "") + "\n".join(paragraphs)

    def name(self, iri: str) -> str:
        """The form of an IRI in the document: a relative reference, a prefixed name, or in full."""
        reference = self._references.reference(iri)
        if reference is not iri:
            return f"<{reference}>"
        return self._prefixes.compact(iri) or f"<{iri}>"

    def _subject(self, subject: Subject) -> str:
        if isinstance(subject, Iri):
            return self._iri(subject)
        return "[]" if self._nesting.is_anonymous(subject) else f"_:{self._labels.of(subject)}"

    def _statements(self, description: Description, depth: int) -> str:
        """Predicates and objects, the type first; lines after the first are indented."""
        lines = []
        types = description.get(_TYPE)
        if types is not None:
            lines.append(f"a {self._objects(types, depth)}")
        for predicate, objects in description.items():
            if predicate == _TYPE:
                continue
            if predicate == _AGENT:
                text = ", ".join([self._in_full(agent, depth) for agent in objects])
            else:
                text = self._objects(objects, depth)
            lines.append(f"{self._iri(predicate)} {text}")
        return f" ;\n{_INDENT * (depth + 1)}".join(lines)

    def _objects(self, objects: tuple[Object, ...], depth: int) -> str:
        if len(objects) == 1:
            return self._object(objects[0], depth)
        return ", ".join([self._object(object_, depth) for object_ in objects])

    def _in_full(self, agent: Object, depth: int) -> str:
        return f"<{agent.value}>" if isinstance(agent, Iri) else self._object(agent, depth)

    def _object(self, object_: Object, depth: int) -> str:
        if type(object_) is Iri:  # and not isinstance, which takes longer: there are no subclasses
            return "()" if object_ == NIL else self._iri(object_)
        if type(object_) is BlankNode:
            return self._blank_node(object_, depth)
        text = str(object_)
        if text[-1] == ">":
            return self._typed(text)
        return _long_string(object_.value, text) if "\\n" in text else text

    def _blank_node(self, node: BlankNode, depth: int) -> str:
        items = self._nesting.list_items(node, depth)
        if items is not None:
            return f"( {' '.join([self._object(item, depth + 1) for item in items])} )"
        description = self._nesting.nested(node, depth)
        if description is None:
            return f"_:{self._labels.of(node)}"
        indent = _INDENT * (depth + 1)
        statements = self._statements(description, depth + 1)
        return f"[\n{indent}{_INDENT}{statements}\n{indent}]"

    def _typed(self, text: str) -> str:
        """Serialize a typed literal, given as in N-Triples: ``"lexical"^^<datatype>``."""
        end = text.rindex('"^^<')
        datatype = text[end + 4 : -1]
        bare = _BARE.get(datatype)
        if bare is not None and bare.match(text[1:end]):
            return text[1:end]
        return f"{text[: end + 1]}^^{self.name(datatype)}"

    def _iri(self, iri: Iri) -> str:
        text = self._iris.get(iri)
        if text is None:
            text = self._iris[iri] = self.name(iri.value)
        return text


def _long_string(value: str, text: str) -> str:
    """A multi-line string in long quotes; ``text`` is its N-Triples form."""
    if "\n" not in value:
        return text
    suffix = text[text.rindex('"') + 1 :]
    return f'"""{_ESCAPED_IN_LONG_STRING.sub(_escape, value)}"""{suffix}'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in '\\"':
        return f"\\{character}"
    return f"\\u{ord(character):04X}"
