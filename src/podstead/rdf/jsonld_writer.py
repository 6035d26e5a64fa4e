"""Serializing a dataset as readable JSON-LD (JSON-LD 1.1, W3C Recommendation).

There is one object per node. Blank nodes and lists are nested, types and property names are
abbreviated with prefixes, and integers and booleans are native JSON if parsing them again yields
the same literal. Named graphs are preserved (R-9). The output is deterministic.

Every ``@id`` is an absolute IRI, because many clients process JSON-LD as plain JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import msgspec

from podstead.core import vocab
from podstead.rdf.graph import Dataset, Description
from podstead.rdf.iris import PrefixTable
from podstead.rdf.json_text import Json, encode_json
from podstead.rdf.labels import BlankNodeLabels
from podstead.rdf.nesting import NIL, Nesting
from podstead.rdf.terms import BlankNode, Iri, Literal, Object, Subject

_TYPE = Iri(vocab.RDF_TYPE)

# JSON-LD 1.1 API, section 8.6: the canonical form of an integer. Any JSON parser can read 15
# digits.
_NATIVE_INTEGER = re.compile(r"(?:0|-?[1-9][0-9]{0,14})\Z")
_NATIVE_BOOLEANS = {"true": True, "false": False}
# An absolute IRI such as "did:web:example.org", whose meaning a prefix "did" would change.
_SCHEME_WITHOUT_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(?!//)")


@dataclass(frozen=True, slots=True)
class Composition:
    """The parts of a JSON-LD document: the prefixes used, and the nodes of the top level.

    ``names`` are the compact forms of the additional IRIs that the caller requested.
    """

    context: dict[str, str]
    nodes: list[dict[str, Json]]
    names: dict[str, str]


def write_json_ld(dataset: Dataset, prefixes: Mapping[str, str]) -> bytes:
    """Serialize the dataset as JSON-LD in UTF-8; ``prefixes`` are the document's own."""
    composition = compose(dataset, prefixes)
    document: dict[str, Json] = {}
    if composition.context:
        document["@context"] = dict(composition.context)
    nodes = composition.nodes
    if len(nodes) == 1 and "@graph" not in nodes[0]:
        document.update(nodes[0])
    elif nodes:
        document["@graph"] = list(nodes)
    return msgspec.json.format(encode_json(document), indent=2) + b"\n"


def compose(
    dataset: Dataset, prefixes: Mapping[str, str], *, names: Iterable[str] = ()
) -> Composition:
    """Compose the parts of a document that also uses the properties and types ``names``."""
    excluded: set[str] = set()
    # The schemes and prefixes in use are known only at the end. Each round excludes at least one
    # more of a finite number of prefixes, so the loop terminates.
    while True:
        writer = _JsonLdWriter(dataset, prefixes, without=excluded)
        nodes, compact = writer.nodes(), writer.compact(names)
        misread = writer.prefixes_misread_for_schemes()
        if not misread:
            break
        excluded |= misread
    return Composition(dict(sorted(writer.prefixes.used.items())), nodes, compact)


class _JsonLdWriter:
    def __init__(
        self, dataset: Dataset, prefixes: Mapping[str, str], *, without: AbstractSet[str]
    ) -> None:
        self.prefixes = PrefixTable(prefixes, without=without)
        self._schemes: set[str] = set()
        self._dataset = dataset
        self._shared = shared_blank_nodes(dataset)
        self._nesting = Nesting(dataset.default, labelled=self._shared)
        self._labels = BlankNodeLabels()
        self._names: dict[str, str] = {}

    def nodes(self) -> list[dict[str, Json]]:
        """The top-level objects: the nodes of the default graph, then the named graphs."""
        nodes = self._roots()
        for name, graph in self._dataset.named.items():
            self._nesting = Nesting(graph, labelled=self._shared)
            nodes.append({"@id": self._id(name), "@graph": list[Json](self._roots())})
        return nodes

    def prefixes_misread_for_schemes(self) -> set[str]:
        """The prefixes in use that are equal to the scheme of an absolute IRI in the document."""
        # The namespaces in the context are full IRIs, too.
        for namespace in self.prefixes.used.values():
            self._absolute(namespace)
        return self._schemes & self.prefixes.used.keys()

    def compact(self, iris: Iterable[str]) -> dict[str, str]:
        """The given properties and types in the form that the document uses."""
        return {iri: self._name(iri) for iri in iris}

    def _roots(self) -> list[dict[str, Json]]:
        nodes = []
        for subject, description in self._nesting.roots():
            node: dict[str, Json] = {}
            if not (isinstance(subject, BlankNode) and self._nesting.is_anonymous(subject)):
                node["@id"] = self._id(subject)
            self._describe(node, description, 0)
            nodes.append(node)
        return nodes

    def _describe(self, node: dict[str, Json], description: Description, depth: int) -> None:
        for predicate, objects in description.items():
            # "@type" does not allow literals; if there is one, the property is written in full.
            if predicate == _TYPE and not any(isinstance(one, Literal) for one in objects):
                key, values = "@type", [self._type(type_) for type_ in objects]
            else:
                key = self._name(predicate.value)
                values = [self._value(object_, depth) for object_ in objects]
            node[key] = values[0] if len(values) == 1 else values

    def _type(self, type_: Object) -> Json:
        if isinstance(type_, BlankNode):
            return f"_:{self._labels.of(type_)}"
        return self._name(type_.value)

    def _value(self, object_: Object, depth: int) -> Json:
        if isinstance(object_, Literal):
            return self._literal(object_)
        if isinstance(object_, Iri):
            return {"@list": []} if object_ == NIL else {"@id": self._id(object_)}
        items = self._nesting.list_items(object_, depth)
        if items is not None:
            return {"@list": [self._value(item, depth + 1) for item in items]}
        description = self._nesting.nested(object_, depth)
        if description is None:
            return {"@id": self._id(object_)}
        node: dict[str, Json] = {}
        self._describe(node, description, depth + 1)
        return node

    def _literal(self, literal: Literal) -> Json:
        language = literal.language
        if language is not None:
            value: dict[str, Json] = {"@value": literal.value, "@language": language}
            if literal.direction is not None:
                value["@direction"] = literal.direction.value
            return value
        datatype = literal.datatype.value
        if datatype == vocab.XSD_STRING:
            return literal.value
        native = native_value(literal)
        if native is not None:
            return native
        return {"@value": literal.value, "@type": self._name(datatype)}

    def _id(self, subject: Subject) -> str:
        if isinstance(subject, BlankNode):
            return f"_:{self._labels.of(subject)}"
        return self._absolute(subject.value)

    def _name(self, iri: str) -> str:
        """A property, type or datatype."""
        name = self._names.get(iri)
        if name is None:
            name = self._names[iri] = self.prefixes.compact(iri) or self._absolute(iri)
        return name

    def _absolute(self, iri: str) -> str:
        if not iri.startswith(("http://", "https://")):
            scheme = _SCHEME_WITHOUT_AUTHORITY.match(iri)
            if scheme is not None:
                self._schemes.add(scheme.group(1))
        return iri


def native_value(literal: Literal) -> int | bool | None:
    """The literal as a JSON number or boolean, if parsing that yields the same literal."""
    lexical, datatype = literal.value, literal.datatype.value
    if datatype == vocab.XSD_INTEGER and _NATIVE_INTEGER.match(lexical):
        return int(lexical)
    if datatype == vocab.XSD_BOOLEAN:
        return _NATIVE_BOOLEANS.get(lexical)
    return None


def shared_blank_nodes(dataset: Dataset) -> frozenset[BlankNode]:
    """The blank nodes that occur in several graphs or name a graph, and so need a label."""
    if not dataset.named:
        return frozenset()
    shared = {name for name in dataset.named if isinstance(name, BlankNode)}
    seen: set[BlankNode] = set()
    for graph in (dataset.default, *dataset.named.values()):
        here = {term for s, _, o in graph for term in (s, o) if isinstance(term, BlankNode)}
        shared |= here & seen
        seen |= here
    return frozenset(shared)
