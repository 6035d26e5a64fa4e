"""Serializing a graph as readable Turtle (RDF 1.1 Turtle, W3C Recommendation).

Only prefixes in use are declared. There is one paragraph per subject, with the type first; blank
nodes and lists are nested, IRIs in the document's container are relative, numbers and booleans are
unquoted, and multi-line strings use long quotes. The output is deterministic.

The terms are taken from the graph as text in N-Triples, whose literals are those of Turtle.

The objects of ``acl:agent`` are always full IRIs, because clients search ACLs for a WebID (R-14).
"""

import re
from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

from podstead.core import vocab
from podstead.core.caches import memoize_short_keys
from podstead.core.vocab import COMMON_PREFIXES
from podstead.rdf.graph import BlankNode, Graph, Iri, Object, Subject

# Decides which blank nodes to nest, as ``[ … ]`` or in a list ``( … )``.
#
# A blank node that is the object of exactly one triple needs no label and is written in place. A
# chain of such nodes with only ``rdf:first`` and ``rdf:rest`` is a list. The nesting depth is
# bounded, because the client controls it; deeper nodes get a label and are written separately, as
# are nodes that are only reachable from themselves.
#
# Nodes are terms in JSON-LD, and the texts of terms in Turtle.

MAX_INLINE_DEPTH = 12

FIRST = Iri(vocab.RDF_FIRST)
REST = Iri(vocab.RDF_REST)
NIL = Iri(vocab.RDF_NIL)


_S = TypeVar("_S", bound=Hashable)
_P = TypeVar("_P", bound=Hashable)
_O = TypeVar("_O", bound=Hashable)


class _Nesting(Generic[_S, _P, _O]):
    """Decides where each node of a graph is written, exactly once."""

    # The terms of lists, of the type of the other nodes.
    _first: ClassVar[Any]
    _rest: ClassVar[Any]
    _nil: ClassVar[Any]

    def __init__(
        self,
        descriptions: Mapping[_S, Mapping[_P, Sequence[_O]]],
        *,
        labelled: Collection[_S] = (),
        nested_iris: Collection[_S] = (),
    ) -> None:
        self._descriptions = descriptions
        self._labelled = labelled
        self._nested_iris = nested_iris
        self._written: set[_S] = set()
        self._not_lists: set[_S] = set()

    def roots(self) -> Iterator[tuple[_S, Mapping[_P, Sequence[_O]]]]:
        """The nodes at the top level, without those that the caller nests during the iteration."""
        later = []
        for subject, description in self._descriptions.items():
            if self._is_nestable(subject):
                later.append(subject)
            else:
                self._written.add(subject)
                yield subject, description
        for subject in later:
            if subject not in self._written:
                self._written.add(subject)
                yield subject, self._descriptions[subject]

    def _blank(self, node: _S | _O) -> _S | None:
        """The node if it is a blank node."""
        raise NotImplementedError

    @cached_property
    def _mentions(self) -> Mapping[_S, int]:
        """How many triples each blank node is the object of; most graphs have none."""
        objects = chain.from_iterable(
            chain.from_iterable([each.values() for each in self._descriptions.values()])
        )
        return Counter([node for node in map(self._blank, objects) if node is not None])

    def is_anonymous(self, node: _S) -> bool:
        """Whether no triple refers to the node, so that a root needs no label."""
        return node not in self._mentions and node not in self._labelled

    def _is_nestable(self, node: _S) -> bool:
        if self._blank(node) is not None:
            return self._mentions.get(node) == 1 and node not in self._labelled
        return node in self._nested_iris

    def nested(self, node: _S, depth: int) -> Mapping[_P, Sequence[_O]] | None:
        """The description to nest in place of a node; ``None`` if its label must be written.

        ``depth`` is the depth of the mention, 0 in a root.
        """
        if depth >= MAX_INLINE_DEPTH or node in self._written or not self._is_nestable(node):
            return None
        description = self._descriptions.get(node)
        if description is not None:
            self._written.add(node)
        return description

    def list_items(self, head: _O, depth: int) -> list[_O] | None:
        """The items of the list to write in place of ``head``, if it is one."""
        items: list[_O] = []
        cells: list[_S] = []
        node = head
        while node != self._nil:
            blank = self._blank(node)
            cell = None if blank is None else self._list_cell(blank)
            if blank is None or cell is None or depth >= MAX_INLINE_DEPTH:
                # Otherwise a long chain that is not a list would be followed from every cell.
                self._not_lists.update(cells)
                return None
            cells.append(blank)
            items.append(cell[0])
            node = cell[1]
        self._written.update(cells)
        return items

    def _list_cell(self, node: _S) -> tuple[_O, _O] | None:
        if node in self._not_lists or node in self._written or not self._is_nestable(node):
            return None
        description = self._descriptions.get(node)
        if description is None or len(description) != 2:
            return None
        first, rest = description.get(self._first, ()), description.get(self._rest, ())
        return (first[0], rest[0]) if len(first) == len(rest) == 1 else None


class Nesting(_Nesting[Subject, Iri, Object]):
    """The nesting of terms.

    ``labelled`` blank nodes also occur in another graph of the dataset and always have a label.
    ``nested_iris`` are nested where they are first mentioned.
    """

    _first, _rest, _nil = FIRST, REST, NIL

    def __init__(
        self,
        graph: Graph,
        *,
        labelled: Collection[BlankNode] = (),
        nested_iris: Collection[Iri] = (),
    ) -> None:
        super().__init__(graph.by_subject(), labelled=labelled, nested_iris=nested_iris)

    def _blank(self, node: Object) -> BlankNode | None:
        return node if type(node) is BlankNode else None


class TextNesting(_Nesting[str, str, str]):
    """The nesting of the texts of terms."""

    _first, _rest, _nil = str(FIRST), str(REST), str(NIL)

    def __init__(self, graph: Graph) -> None:
        super().__init__(_grouped(graph.texts))

    def _blank(self, node: str) -> str | None:
        return node if node[0] == "_" else None


def _grouped(texts: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """As ``Graph.by_subject``, but of texts."""
    descriptions: dict[str, dict[str, list[str]]] = {}
    start, objects = "\n", list[str]()
    for text in texts:
        # Triples of one subject and predicate mostly follow one another.
        if not text.startswith(start):
            # Of the terms, only a literal, which is the last one, can contain a space.
            subject, predicate, _ = text.split(" ", 2)
            start = f"{subject} {predicate} "
            objects = descriptions.setdefault(subject, {}).setdefault(predicate, [])
        objects.append(text[len(start) :])
    return descriptions


# Abbreviating IRIs, as prefixed names or relative references.
#
# Only forms are produced that every parser expands to the same IRI: local names are plain ASCII
# words, and references are relative only if RFC 3986, section 5.2, resolves them unambiguously.

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*\Z")
_LOCAL_NAME = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_\-])?)?\Z")
_DOT_SEGMENT = re.compile(r"(?:\A|/)\.\.?(?:/|\Z)")
_AFTER_PATH = re.compile(r"[?#]")
_COMMON_NAMES = {namespace: prefix for prefix, namespace in COMMON_PREFIXES.items()}


@memoize_short_keys
def is_plain_prefix(prefix: str) -> bool:
    """Whether the prefix is an ASCII word, which every format accepts."""
    return _PREFIX.match(prefix) is not None


class PrefixTable:
    """The prefixes available to a serialized document: its own, then the customary ones.

    ``used`` maps the prefixes that were actually used to namespaces. ``empty`` allows the empty
    prefix (as in Turtle's ``:me``).
    """

    __slots__ = ("_declared", "_own", "_without", "used")

    def __init__(
        self,
        prefixes: Mapping[str, str],
        *,
        empty: bool = False,
        without: Container[str] = (),
    ) -> None:
        self._declared = prefixes
        self._own = {
            namespace: prefix
            for prefix, namespace in prefixes.items()
            if is_plain_prefix(prefix) or (empty and prefix == "")
        }
        self._without = without
        self.used: dict[str, str] = {}

    def compact(self, iri: str) -> str | None:
        """``prefix:local``, or ``None`` if no prefix matches or the rest is not a plain name."""
        name = _split(iri)
        if name is None:
            return None
        namespace, local = name
        prefix = self._own.get(namespace)
        if prefix is None:
            prefix = _COMMON_NAMES.get(namespace)
            if prefix is None or prefix in self._declared:  # for another namespace
                return None
        if prefix in self._without:
            return None
        self.used[prefix] = namespace
        return f"{prefix}:{local}"


@memoize_short_keys
def _split(iri: str) -> tuple[str, str] | None:
    """The namespace and the local name of an IRI; ``None`` if the latter is not a plain name."""
    end = len(namespace_of(iri))
    return (iri[:end], iri[end:]) if _LOCAL_NAME.match(iri, end) else None


def namespace_of(iri: str) -> str:
    """The IRI up to its local name."""
    return iri[: (iri.rfind("#") + 1) or (iri.rfind("/") + 1) or (iri.rfind(":") + 1)]


class RelativeReferences:
    """Abbreviates IRIs relative to one base IRI, which has neither query nor fragment."""

    __slots__ = ("_base", "container")

    def __init__(self, base_iri: str | None) -> None:
        self._base = base_iri
        # What every IRI with a reference starts with.
        self.container = "" if base_iri is None else base_iri[: base_iri.rfind("/") + 1]

    def reference(self, iri: str) -> str:
        """A relative reference within the base document or its container; otherwise the IRI."""
        base = self._base
        if base is None or not iri.startswith(self.container):
            return iri
        if iri.startswith(base) and iri[len(base) : len(base) + 1] in ("", "#"):
            return iri[len(base) :]
        return relative_name(iri[len(self.container) :]) or iri


def relative_name(rest: str) -> str | None:
    """Turn what follows a container's IRI into a reference relative to it or to one of its members.

    ``None`` if no relative reference is possible: an empty first segment would become an authority,
    a dot segment would be removed, and a bare query would be resolved against the base document.
    """
    if rest == "":
        return "./"
    after_path = _AFTER_PATH.search(rest)
    path = rest if after_path is None else rest[: after_path.start()]
    if path == "" or path.startswith("/") or _DOT_SEGMENT.search(path):
        return None
    # "a:b" would be read as an absolute IRI with the scheme "a" (RFC 3986 section 4.2).
    return f"./{rest}" if ":" in path.partition("/")[0] else rest


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
