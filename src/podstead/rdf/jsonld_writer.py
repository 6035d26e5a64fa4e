"""Serializing a dataset as readable JSON-LD (JSON-LD 1.1, W3C Recommendation).

There is one object per node. Blank nodes and lists are nested, types and property names are
abbreviated with prefixes, and integers and booleans are native JSON if parsing them again yields
the same literal. Named graphs are preserved (R-9). The output is deterministic.

Every ``@id`` is an absolute IRI, because many clients process JSON-LD as plain JSON.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from podstead.core import vocab
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.graph import (
    BlankNode,
    Dataset,
    Description,
    Iri,
    Literal,
    Object,
    Subject,
    Triple,
)
from podstead.rdf.jsonld_contexts import Json, decode_json, encode_json
from podstead.rdf.jsonld_terms import TermDefinition, TermTable
from podstead.rdf.turtle_writer import NIL, Nesting, PrefixTable


class BlankNodeLabels:
    """Assigns labels to the blank nodes of one document."""

    __slots__ = ("_labels",)

    def __init__(self) -> None:
        self._labels: dict[BlankNode, str] = {}

    def of(self, node: BlankNode) -> str:
        """The label, without ``_:``."""
        label = self._labels.get(node)
        if label is None:
            label = self._labels[node] = f"b{len(self._labels)}"
        return label

    def given(self) -> Mapping[BlankNode, str]:
        """The labels assigned so far."""
        return self._labels

    def renamed(self, term: Subject) -> Subject:
        """The term itself, or a blank node with its label."""
        return BlankNode(self.of(term)) if isinstance(term, BlankNode) else term

    def renamed_triples(self, triples: Iterable[Triple]) -> Iterator[Triple]:
        """The triples with their blank nodes relabelled."""
        for subject, predicate, object_ in triples:
            yield (
                self.renamed(subject),
                predicate,
                self.renamed(object_) if isinstance(object_, BlankNode) else object_,
            )


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


# Choosing the term for a value, and compacting the value under it.
#
# Implements JSON-LD 1.1 API, sections 6.3 (value compaction) and 7.4 (term selection). A term with
# a coercion is used only for values that the coercion yields from plain JSON; a term without one is
# used for any value.

_RDF_JSON = vocab.RDF + "JSON"
_MAX_JSON_DEPTH = 100
# Which containers are possible for which values; _rank treats "@language" and "@list" separately.
_HOLDS_LITERALS = frozenset({"@set", "@index"})
_HOLDS_NODES = frozenset({"@set", "@index", "@type", "@id"})


@dataclass(frozen=True, slots=True)
class ListValue:
    """A list to be written in place."""

    items: list[Object]


@dataclass(frozen=True, slots=True)
class NodeValue:
    """A node to be nested in place."""

    node: Subject
    description: Description


Value: TypeAlias = Literal | Iri | BlankNode | ListValue | NodeValue


def best_term(
    value: Value,
    terms: Sequence[TermDefinition],
    chosen: Mapping[TermDefinition, object],
    table: TermTable,
) -> TermDefinition | None:
    """The best matching term for a value, if any; ``chosen`` are the terms that have values
    already."""
    # Ties are resolved by length and then alphabetically, so that the result is deterministic.
    best: tuple[int, int, str, TermDefinition] | None = None
    for term in terms:
        rank = _rank(value, term, table)
        if rank is None or (term in chosen and _holds_one(term)):
            continue
        candidate = (rank, len(term.name), term.name, term)
        if best is None or candidate[:3] < best[:3]:
            best = candidate
    return None if best is None else best[3]


def _holds_one(term: TermDefinition) -> bool:
    """Whether an array under the term is a single value: a list, or a JSON literal."""
    return "@list" in term.container or term.coercion == "@json"


def _rank(value: Value, term: TermDefinition, table: TermTable) -> int | None:
    """How well a term expresses a value: 0 as plain JSON, 1 as an object, ``None`` not at all."""
    container = term.container
    if "@list" in container:
        return _rank_in_list(value, term, table)
    if "@language" in container:
        is_text = isinstance(value, Literal) and value.language is not None
        return 0 if is_text and _direction(value) == term.direction else None
    if isinstance(value, ListValue):
        holds, fits = container <= {"@set"}, False
    elif isinstance(value, Literal):
        holds, fits = container <= _HOLDS_LITERALS, bare(value, term) is not None
    else:
        holds, fits = container <= _HOLDS_NODES, _is_bare_node(value, term, table)
    if holds and fits:
        return 0
    # A coerced term could have an object as well, but compaction never selects a term with a
    # different type mapping (JSON-LD 1.1 API, 4.3 and 7.4).
    return 1 if holds and term.coercion is None else None


def _rank_in_list(value: Value, term: TermDefinition, table: TermTable) -> int | None:
    if not isinstance(value, ListValue):
        return None
    fits = all(
        bare(item, term) is not None
        if isinstance(item, Literal)
        else _is_bare_node(item, term, table)
        for item in value.items
    )
    return 0 if fits else 1


def _is_bare_node(
    value: Iri | BlankNode | NodeValue, term: TermDefinition, table: TermTable
) -> bool:
    if term.coercion == "@vocab":
        return isinstance(value, Iri) and ":" not in table.type_name(value.value)
    return term.coercion == "@id"


def bare(literal: Literal, term: TermDefinition) -> tuple[Json] | None:
    """The plain JSON value for the literal under this term, if there is one.

    In a tuple, because the value can be ``null``.
    """
    language, datatype = literal.language, literal.datatype.value
    native = native_value(literal)
    if term.coercion == "@json":
        return _json_value(literal) if datatype == _RDF_JSON else None
    if term.coercion is not None:
        same = language is None and term.coercion == datatype
        return (literal.value if native is None else native,) if same else None
    if language is not None:
        same = language == term.language and _direction(literal) == term.direction
        return (literal.value,) if same else None
    if datatype == vocab.XSD_STRING:  # a plain string would get the default language
        return (literal.value,) if term.language is None else None
    return None if native is None else (native,)


def value_object(literal: Literal, table: TermTable) -> dict[str, Json]:
    """The literal as a value object, which is valid under any term."""
    value: dict[str, Json] = {table.keyword("@value"): literal.value}
    if literal.language is not None:
        value[table.keyword("@language")] = literal.language
        if literal.direction is not None:
            value[table.keyword("@direction")] = literal.direction.value
    elif literal.datatype.value != vocab.XSD_STRING:
        value[table.keyword("@type")] = table.type_name(literal.datatype.value)
    return value


def _direction(value: Value) -> str | None:
    if not isinstance(value, Literal) or value.direction is None:
        return None
    return value.direction.value


def _json_value(literal: Literal) -> tuple[Json] | None:
    """The value of a JSON literal, if parsing it again yields the same literal."""
    # The parser serializes JSON literals in canonical form (JSON-LD 1.1 API, 8.6), so a literal in
    # another form would become a different one.
    try:
        value = decode_json(literal.value.encode(), max_depth=_MAX_JSON_DEPTH)
    except MalformedRdf:
        return None
    canonical = msgspec.json.encode(value, order="sorted").decode()
    return (value,) if canonical == literal.value else None


def one_or_all(values: list[Json], *, always_all: bool) -> Json:
    """The values as an array, or a single value without an array unless ``always_all``."""
    return values if always_all or len(values) != 1 else values[0]


def by_key(pairs: Sequence[tuple[str, Json]], *, always_all: bool) -> dict[str, Json]:
    """A map for a container, with one value or an array under each key."""
    grouped: dict[str, list[Json]] = {}
    for key, value in pairs:
        grouped.setdefault(key, []).append(value)
    return {key: one_or_all(values, always_all=always_all) for key, values in grouped.items()}
