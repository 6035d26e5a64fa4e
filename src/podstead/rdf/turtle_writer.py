"""Serializing a graph as readable Turtle (RDF 1.1 Turtle, W3C Recommendation).

Only prefixes in use are declared. There is one paragraph per subject, with the type first; blank
nodes and lists are nested, IRIs in the document's container are relative, numbers and booleans are
unquoted, and multi-line strings use long quotes. The output is deterministic.

The terms are taken from the graph as text in N-Triples, whose literals are those of Turtle.

The objects of ``acl:agent`` are always full IRIs, because clients search ACLs for a WebID (R-14).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from podstead.core import vocab
from podstead.rdf.graph import Graph
from podstead.rdf.iris import PrefixTable, RelativeReferences
from podstead.rdf.nesting import NIL, TextNesting

_TYPE = f"<{vocab.RDF_TYPE}>"
_AGENT = f"<{vocab.ACL_AGENT}>"
_NIL = str(NIL)

# Literals that are written unquoted, in canonical form only (XML Schema 1.1 Part 2): some parsers
# convert them to numbers and return another form of the same value. Doubles are never safe.
_BARE = {
    vocab.XSD_INTEGER: re.compile(r"(?:0|-?[1-9][0-9]*)\Z"),
    vocab.XSD_DECIMAL: re.compile(r"(?!-0\.0\Z)-?(?:0|[1-9][0-9]*)\.(?:0|[0-9]{0,5}[1-9])\Z"),
    vocab.XSD_BOOLEAN: re.compile(r"(?:true|false)\Z"),
}
_ESCAPED_IN_LONG_STRING = re.compile(r'[\\\r\x00-\x08\x0b-\x1f\x7f]|"(?="")|"(?="\Z)|"\Z')
_ESCAPED_IN_N_TRIPLES = re.compile(r"\\(?:u([0-9A-F]{4})|U([0-9A-F]{8})|(.))")
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_INDENT = "    "

_Description = Mapping[str, Sequence[str]]


def write_turtle(graph: Graph, prefixes: Mapping[str, str], *, base_iri: str | None) -> bytes:
    """Serialize the graph as Turtle in UTF-8; ``prefixes`` are the document's own."""
    return TurtleWriter(graph, prefixes, base_iri=base_iri).text().encode()


class TurtleWriter:
    """Serializes one graph, once."""

    __slots__ = ("_iris", "_labels", "_nesting", "_prefixes", "_references")

    def __init__(self, graph: Graph, prefixes: Mapping[str, str], *, base_iri: str | None) -> None:
        self._prefixes = PrefixTable(prefixes, empty=True)
        self._references = RelativeReferences(base_iri)
        self._labels: dict[str, str] = {}
        self._nesting = TextNesting(graph)
        self._iris: dict[str, str] = {}

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
        if iri.startswith(self._references.container):
            reference = self._references.reference(iri)
            if reference is not iri:
                return f"<{reference}>"
        return self._prefixes.compact(iri) or f"<{iri}>"

    def _subject(self, subject: str) -> str:
        if subject[0] == "<":
            return self._iri(subject)
        return "[]" if self._nesting.is_anonymous(subject) else self._label(subject)

    def _statements(self, description: _Description, depth: int) -> str:
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

    def _objects(self, objects: Sequence[str], depth: int) -> str:
        # Most literals are written as they are, and need no function call.
        return ", ".join(
            [
                text if text[-1] == '"' and "\\n" not in text else self._object(text, depth)
                for text in objects
            ]
        )

    def _in_full(self, agent: str, depth: int) -> str:
        return agent if agent[0] == "<" else self._object(agent, depth)

    def _object(self, text: str, depth: int) -> str:
        start = text[0]
        if start == "<":
            return "()" if text == _NIL else self._iri(text)
        if start == "_":
            return self._blank_node(text, depth)
        if text[-1] == ">":
            return self._typed(text)
        return _long_string(text) if "\\n" in text else text

    def _blank_node(self, node: str, depth: int) -> str:
        items = self._nesting.list_items(node, depth)
        if items is not None:
            return f"( {' '.join([self._object(item, depth + 1) for item in items])} )"
        description = self._nesting.nested(node, depth)
        if description is None:
            return self._label(node)
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

    def _label(self, node: str) -> str:
        """``_:b0``, ``_:b1``, … in order of appearance."""
        return self._labels.setdefault(node, f"_:b{len(self._labels)}")

    def _iri(self, text: str) -> str:
        name = self._iris.get(text)
        if name is None:
            name = self._iris[text] = self.name(text[1:-1])
        return name


def _long_string(text: str) -> str:
    """A string in long quotes if it has several lines."""
    end = text.rindex('"')
    value = _ESCAPED_IN_N_TRIPLES.sub(_unescape, text[1:end])
    if "\n" not in value:
        return text
    return f'"""{_ESCAPED_IN_LONG_STRING.sub(_escape, value)}"""{text[end + 1 :]}'


def _unescape(match: re.Match[str]) -> str:
    short, long, character = match.groups()
    if character is None:
        return chr(int(short or long, 16))
    return _UNESCAPED.get(character, character)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in '\\"':
        return f"\\{character}"
    return f"\\u{ord(character):04X}"
