"""Serializing a changed JSON-LD document with the context that it was sent with.

Implements compaction (JSON-LD 1.1 API, section 6) of one document in its own style
(``jsonld_terms``): terms, aliases, coercions and containers are used where they apply, and
everything else is written in expanded form.

A context can change the meaning of a document in many ways. Therefore the output is parsed again
and compared; if it is not equivalent, it is not returned, and the caller serializes the document
with prefixes only (``jsonld_writer``).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

import msgspec

from podstead.core import vocab
from podstead.core.errors import BadRequest
from podstead.rdf import jsonld_writer
from podstead.rdf.errors import NotExpressible
from podstead.rdf.graph import (
    BlankNode,
    Dataset,
    Description,
    Graph,
    Iri,
    Literal,
    Object,
    Subject,
    Triple,
)
from podstead.rdf.jsonld_contexts import Json, encode_json
from podstead.rdf.jsonld_terms import Meanings, Original, Style, TermDefinition, TermTable
from podstead.rdf.turtle_writer import NIL, Nesting

# Compares datasets up to the labels of some blank nodes.
#
# In general this is as hard as graph isomorphism, and must not be computed for untrusted documents.
# Here every blank node either has a known label in both datasets, or is part of a tree: it is
# mentioned at most once. Such a node is identified by its description, and the comparison takes
# linear time.

_Key: TypeAlias = Object | str | int
"""A term, the label of a known blank node, or the number of an unlabelled node's description."""
_Statement: TypeAlias = tuple[_Key | None, _Key, Iri | None, _Key | None]
_Numbers: TypeAlias = dict[frozenset[tuple[tuple[Iri, _Key], int]], int]
"""The descriptions of unlabelled nodes, numbered."""


class _NotATree(Exception):
    """An unlabelled blank node is mentioned twice, or by itself."""


def datasets_equivalent(
    left: Dataset,
    right: Dataset,
    *,
    left_labels: Mapping[BlankNode, str],
    right_labels: Mapping[BlankNode, str],
) -> bool:
    """Whether the datasets are equal up to the blank nodes that have no label in ``*_labels``.

    False also if those nodes do not form trees.
    """
    numbers: _Numbers = {}
    try:
        return _statements(left, left_labels, numbers) == _statements(right, right_labels, numbers)
    except _NotATree:
        return False


def _statements(
    dataset: Dataset, labels: Mapping[BlankNode, str], numbers: _Numbers
) -> Counter[_Statement]:
    statements: Counter[_Statement] = Counter()
    unlabelled: set[BlankNode] = set()
    for name, graph in [(None, dataset.default), *dataset.named.items()]:
        if not len(graph):
            continue
        graph_key = None if name is None else _key(name, labels, {})
        described = _Trees(graph, labels).numbered(numbers)
        if not unlabelled.isdisjoint(described):
            raise _NotATree
        unlabelled.update(described)
        mentioned: Counter[Object] = Counter()
        for subject, predicate, object_ in graph:
            mentioned[object_] += 1
            if subject not in described:
                said = _key(subject, labels, {}), predicate, _key(object_, labels, described)
                statements[graph_key, *said] += 1
        for node, number in described.items():
            if mentioned[node] > 1:
                raise _NotATree
            if mentioned[node] == 0:
                statements[graph_key, number, None, None] += 1
    return statements


class _Trees:
    """Numbers the unlabelled blank nodes of a graph, from the leaves up."""

    def __init__(self, graph: Graph, labels: Mapping[BlankNode, str]) -> None:
        self._labels = labels
        self._says: dict[BlankNode, list[tuple[Iri, Object]]] = {}
        self._open_parts: Counter[BlankNode] = Counter()
        self._holder: dict[BlankNode, BlankNode] = {}
        for subject, predicate, object_ in graph:
            part = object_ if self._is_unlabelled(object_) else None
            if part is not None:
                self._says.setdefault(part, [])
            if self._is_unlabelled(subject):
                self._says.setdefault(subject, []).append((predicate, object_))
                if part is not None:
                    self._open_parts[subject] += 1
                    self._holder[part] = subject

    def _is_unlabelled(self, term: Object) -> TypeGuard[BlankNode]:
        return type(term) is BlankNode and term not in self._labels

    def numbered(self, numbers: _Numbers) -> dict[BlankNode, int]:
        """A number for each node; nodes with equal descriptions have the same. Raises _NotATree."""
        described: dict[BlankNode, int] = {}
        ready = [node for node in self._says if not self._open_parts[node]]
        while ready:
            node = ready.pop()
            content = Counter(
                (predicate, _key(object_, self._labels, described))
                for predicate, object_ in self._says[node]
            )
            described[node] = numbers.setdefault(frozenset(content.items()), len(numbers))
            holder = self._holder.get(node)
            if holder is not None:
                self._open_parts[holder] -= 1
                if not self._open_parts[holder]:
                    ready.append(holder)
        if len(described) != len(self._says):
            raise _NotATree
        return described


def _key(term: Object, labels: Mapping[BlankNode, str], described: Mapping[BlankNode, int]) -> _Key:
    if type(term) is not BlankNode:
        return term
    label = labels.get(term)
    if label is not None:
        return label
    number = described.get(term)
    if number is None:
        raise _NotATree
    return number


Read = Callable[[bytes], Dataset]
"""Parses a JSON-LD document as it will be parsed later. Raises BadRequest."""

MAX_TRIPLES = 20_000
"""Larger documents are written with prefixes only; this size already takes one or two seconds."""

_TYPE = Iri(vocab.RDF_TYPE)
# The keys of these maps are not in the graph (``@index``), or are in it anyway (``@type``), so all
# values are written under "@none".
_KEYED = frozenset({"@index", "@type"})


def rewrite(
    dataset: Dataset, original: Original, *, base_iri: str, meanings: Meanings, read: Read
) -> bytes | None:
    """The dataset in the style of a document; ``None`` if its context cannot express it."""
    if len(dataset) > MAX_TRIPLES:
        return None
    try:
        style = Style(original, base_iri=base_iri, meanings=meanings)
        writer = _Rewriter(dataset, style)
        content = writer.document()
        read_back = read(content)
    except (BadRequest, NotExpressible):
        return None
    # Labelled blank nodes have the same label on both sides, and the others form trees, so the
    # comparison takes linear time. With graph isomorphism, a malicious document could take minutes
    # (docs/evidence/decisions/0009-json-ld-keeps-its-context.md).
    labels = writer.labels.given()
    same = datasets_equivalent(
        dataset,
        read_back,
        left_labels=labels,
        right_labels={BlankNode(label): label for label in labels.values()},
    )
    return content if same else None


@dataclass(frozen=True, slots=True)
class _Place:
    """The terms active in a node, and in the nodes nested in it; ``depth`` is 0 in a root.

    They differ if a type has a scoped context, which does not propagate to nested nodes unless it
    says so (JSON-LD 1.1, section 4.1.8).
    """

    table: TermTable
    propagated: TermTable
    depth: int

    def under(self, term: TermDefinition) -> "_Place":
        """The place of a property's values; the scoped context of a property does propagate."""
        return _Place(self.table.under(term), self.propagated.under(term), self.depth)

    def deeper(self) -> "_Place":
        return _Place(self.table, self.propagated, self.depth + 1)


class _Rewriter:
    def __init__(self, dataset: Dataset, style: Style) -> None:
        self.labels = jsonld_writer.BlankNodeLabels()
        self._dataset = dataset
        self._style = style
        self._shared = jsonld_writer.shared_blank_nodes(dataset)
        # For the graph that is being written; _roots replaces both.
        self._nesting = Nesting(dataset.default)
        self._reversed: Mapping[Subject, Mapping[Iri, list[Subject]]] = {}

    def document(self) -> bytes:
        """The whole document. Raises NotExpressible, and MalformedRdf for a scoped context."""
        style, table = self._style, self._style.table
        nodes: list[Json] = list(self._roots(self._dataset.default))
        for name, graph in self._dataset.named.items():
            head: dict[str, Json] = {table.keyword("@id"): self._id(name, table)}
            nodes.append({**head, table.keyword("@graph"): list[Json](self._roots(graph))})
        document: dict[str, Json] = {"@context": style.context}
        only = nodes[0] if len(nodes) == 1 and not self._dataset.named else None
        if isinstance(only, dict) and not style.has_graph_at_top:
            document.update(only)
        elif nodes or style.has_graph_at_top:
            document[table.keyword("@graph")] = nodes
        return msgspec.json.format(encode_json(document), indent=2) + b"\n"

    def _roots(self, graph: Graph) -> list[dict[str, Json]]:
        forward, self._reversed = self._split(graph)
        # Nesting does not see the triples that are written in reverse. It would take these nodes
        # for unreferenced ones and omit the labels that connect them.
        reverse_subjects = {
            subject
            for mentions in self._reversed.values()
            for subjects in mentions.values()
            for subject in subjects
            if isinstance(subject, BlankNode)
        }
        self._nesting = Nesting(
            forward,
            labelled=self._shared | reverse_subjects,
            nested_iris=self._style.nested(graph.by_subject()),
        )
        place = _Place(self._style.table, self._style.table, 0)
        return [
            self._node(subject, description, place, is_root=True)
            for subject, description in self._nesting.roots()
        ]

    def _split(self, graph: Graph) -> tuple[Graph, Mapping[Subject, Mapping[Iri, list[Subject]]]]:
        """The triples to write at their subject, and those to write at their object because the
        context defines the property only in reverse (JSON-LD 1.1, section 4.8)."""
        table, subjects = self._style.table, graph.by_subject()
        forward: list[Triple] = []
        backward: dict[Subject, dict[Iri, list[Subject]]] = {}
        for triple in graph:
            subject, predicate, object_ = triple
            if (
                not isinstance(object_, Literal)
                and table.reverse_term_of(predicate.value) is not None
                and object_ in subjects  # else there is no node to write it in
                and object_ != subject
            ):
                backward.setdefault(object_, {}).setdefault(predicate, []).append(subject)
            else:
                forward.append(triple)
        described = {subject for subject, _, _ in forward}
        if not backward:
            return graph, backward
        # If all triples of an object have been moved to other objects, no node is written for it,
        # and the triples that were to be written there are written forward.
        kept = {node: mentions for node, mentions in backward.items() if node in described}
        forward += [
            (subject, predicate, node)
            for node, mentions in backward.items()
            if node not in described
            for predicate, subjects_ in mentions.items()
            for subject in subjects_
        ]
        return Graph(forward), kept

    def _node(
        self, subject: Subject, description: Description, place: _Place, *, is_root: bool = False
    ) -> dict[str, Json]:
        table = place.propagated
        types = description.get(_TYPE, ())
        # "@type" allows IRIs and blank nodes only; with a literal among them, all are written as
        # values of an ordinary property.
        if any(isinstance(type_, Literal) for type_ in types):
            types = ()
        # Types use the terms that are active outside the node: a parser resolves them first, to
        # find their scoped contexts (JSON-LD 1.1 API, 5.1.2 steps 10 and 11).
        names = [
            table.type_name(type_.value) if isinstance(type_, Iri) else self._id(type_, table)
            for type_ in types
            if not isinstance(type_, Literal)
        ]
        inside, propagated = table.with_types(names)
        within = _Place(inside, propagated, place.depth)
        node: dict[str, Json] = {}
        if isinstance(subject, Iri) or (is_root and not self._nesting.is_anonymous(subject)):
            node[inside.keyword("@id")] = self._id(subject, inside)
        for predicate, objects in description.items():
            if predicate == _TYPE and names:
                key = table.keyword("@type")
                all_ = inside.types_in_array or key in self._style.array_keys
                node[key] = jsonld_writer.one_or_all(list[Json](names), always_all=all_)
            else:
                self._describe(node, predicate, objects, within)
        for predicate, subjects in self._reversed.get(subject, {}).items():
            self._describe_reverse(node, predicate, subjects, within)
        return node

    def _describe(
        self, node: dict[str, Json], predicate: Iri, objects: Sequence[Object], place: _Place
    ) -> None:
        """Add the values of one property to a node, each under the best matching term."""
        table, iri = place.table, predicate.value
        # One property can need several terms, for example one for dates and one for texts.
        chosen: dict[TermDefinition, list[jsonld_writer.Value]] = {}
        for object_ in objects:
            value = self._value(object_, place.depth)
            term = jsonld_writer.best_term(
                value, table.terms_of(iri), chosen, table
            ) or table.nameless(iri)
            chosen.setdefault(term, []).append(value)
        for term, values in chosen.items():
            node[term.name] = self._all_under(term, values, place.under(term))

    def _describe_reverse(
        self, node: dict[str, Json], predicate: Iri, subjects: Sequence[Subject], place: _Place
    ) -> None:
        # _split used the top-level terms, but a scoped context can have others. If it gives the
        # name another meaning, the final comparison detects that.
        term = place.table.reverse_term_of(predicate.value) or self._style.table.reverse_term_of(
            predicate.value
        )
        if term is not None:
            values = [self._value(subject, place.depth) for subject in subjects]
            node[term.name] = self._all_under(term, values, place.under(term))

    def _value(self, object_: Object, depth: int) -> jsonld_writer.Value:
        if isinstance(object_, Literal):
            return object_
        if object_ == NIL:
            return jsonld_writer.ListValue([])
        items = self._nesting.list_items(object_, depth)
        if items is not None:
            return jsonld_writer.ListValue(items)
        description = self._nesting.nested(object_, depth)
        return object_ if description is None else jsonld_writer.NodeValue(object_, description)

    def _all_under(
        self, term: TermDefinition, values: list[jsonld_writer.Value], place: _Place
    ) -> Json:
        container = term.container
        always_all = "@set" in container or term.name in self._style.array_keys
        first = values[0]
        # best_term assigns only one list to such a term, because two would be merged.
        if "@list" in container and isinstance(first, jsonld_writer.ListValue):
            return self._items(term, first, place)
        if "@language" in container:
            texts: list[tuple[str, Json]] = [
                (value.language, value.value)
                for value in values
                if isinstance(value, Literal) and value.language is not None
            ]
            return jsonld_writer.by_key(texts, always_all="@set" in container)
        if "@id" in container:
            nodes = [self._with_id(value, place) for value in values]
            return jsonld_writer.by_key(nodes, always_all="@set" in container)
        every = [self._under(term, value, place) for value in values]
        written = jsonld_writer.one_or_all(every, always_all=always_all)
        if not container.isdisjoint(_KEYED):
            return {place.table.keyword("@none"): written}
        return written

    def _with_id(self, value: jsonld_writer.Value, place: _Place) -> tuple[str, Json]:
        """A node and its key in an ``@id`` map, which replaces the node's own ``@id``."""
        none = place.table.keyword("@none")
        if isinstance(value, jsonld_writer.NodeValue):
            node = self._node(value.node, value.description, place.deeper())
            name = node.pop(place.table.keyword("@id"), none)
            return str(name), node
        if isinstance(value, Iri | BlankNode):  # without a description here
            return self._id(value, place.table), {}
        return none, {}

    def _items(
        self, term: TermDefinition, value: jsonld_writer.ListValue, place: _Place
    ) -> list[Json]:
        inner = place.deeper()
        return [self._under(term, self._value(item, inner.depth), inner) for item in value.items]

    def _under(self, term: TermDefinition, value: jsonld_writer.Value, place: _Place) -> Json:
        """Serialize one value under a term."""
        table = place.table
        if isinstance(value, Literal):
            written = jsonld_writer.bare(value, term)
            return jsonld_writer.value_object(value, table) if written is None else written[0]
        if isinstance(value, jsonld_writer.ListValue):
            return {table.keyword("@list"): self._items(term, value, place)}
        if isinstance(value, jsonld_writer.NodeValue):
            return self._node(value.node, value.description, place.deeper())
        if term.coercion == "@id":
            return self._id(value, table)
        if term.coercion == "@vocab" and isinstance(value, Iri):
            return table.type_name(value.value)
        return {table.keyword("@id"): self._id(value, table)}

    def _id(self, subject: Subject, table: TermTable) -> str:
        if isinstance(subject, BlankNode):
            return f"_:{self.labels.of(subject)}"
        return self._style.id_of(subject.value, table)
