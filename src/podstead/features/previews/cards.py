"""Renders linked data as readable cards, one for each thing that a document describes, and as a
table of statements.

Pure: a graph in, values out. Blank nodes that one statement refers to are shown inside the card
that refers to them, lists as their items. Everything is bounded; what is left out is counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Final

from podstead.core import vocab
from podstead.features.previews import labels
from podstead.rdf.graph import BlankNode, Dataset, Graph, GraphName, Iri, Literal, Object, Subject
from podstead.web.pages.links import Address, Links

MAX_CARDS: Final = 100
MAX_PROPERTIES: Final = 60
MAX_VALUES: Final = 50
_MAX_DEPTH: Final = 3
_MAX_STEPS: Final = 5_000
"""The limit for the values of all cards together, so that a document full of blank nodes stays
small."""
_MAX_WALKED: Final = 30_000
"""The limit for list cells visited for all cards together. No document that is small enough for
cards has so many, but one list can be the value of thousands of statements."""

_TYPE: Final = Iri(vocab.RDF_TYPE)
_FIRST: Final = Iri(vocab.RDF_FIRST)
_REST: Final = Iri(vocab.RDF_REST)
_NIL: Final = Iri(vocab.RDF_NIL)
_TOPIC: Final = Iri(vocab.FOAF + "primaryTopic")

PICTURES: Final = tuple(
    Iri(iri)
    for iri in (
        vocab.FOAF + "img",
        vocab.FOAF + "depiction",
        vocab.FOAF + "thumbnail",
        vocab.VCARD + "hasPhoto",
        vocab.SCHEMA + "image",
        vocab.SCHEMA_HTTP + "image",
        vocab.AS + "image",
        vocab.AS + "icon",
    )
)


class ValueKind(Enum):
    """How a value is written."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"
    DATE = "date"
    LINK = "link"
    CARD = "card"


_VALUE_KINDS: Final = {
    vocab.XSD_BOOLEAN: ValueKind.BOOLEAN,
    vocab.XSD_DATE_TIME: ValueKind.TIME,
    vocab.XSD + "date": ValueKind.DATE,
    vocab.XSD_INTEGER: ValueKind.NUMBER,
    vocab.XSD_DECIMAL: ValueKind.NUMBER,
    vocab.XSD + "double": ValueKind.NUMBER,
    vocab.XSD + "float": ValueKind.NUMBER,
    vocab.XSD + "int": ValueKind.NUMBER,
    vocab.XSD + "long": ValueKind.NUMBER,
    vocab.XSD + "nonNegativeInteger": ValueKind.NUMBER,
}


@dataclass(frozen=True, slots=True)
class CardValue:
    """One value of a property. ``iri`` is the full IRI of a link, for a tooltip."""

    kind: ValueKind
    text: str
    iri: str | None = None
    link: Address | None = None
    picture: str | None = None
    language: str | None = None
    card: "Card | None" = None


@dataclass(frozen=True, slots=True)
class CardProperty:
    """A property with its values. ``more`` values are not shown."""

    name: str
    iri: str
    values: tuple[CardValue, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """What a document says about one thing.

    ``anchor`` is the card's place on the page, to which links within the document lead.
    """

    title: str
    iri: str | None
    anchor: str
    link: Address | None = None
    types: tuple[str, ...] = ()
    picture: str | None = None
    properties: tuple[CardProperty, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Cards:
    """The cards of a document; ``more`` things are not shown."""

    cards: tuple[Card, ...]
    more: int = 0


def read_cards(graph: Graph, links: Links, language: str = "en") -> Cards:
    """The cards of a document, beginning with the thing that it is about."""
    return _Reader(graph, links, language).cards()


@dataclass(frozen=True, slots=True)
class _Head:
    """The heading of a card, wherever it is shown."""

    title: str
    types: tuple[str, ...]
    picture: str | None


@dataclass
class _Reader:
    graph: Graph
    links: Links
    language: str
    steps: int = 0
    walked: int = 0
    anchors: dict[Subject, str] = field(default_factory=dict)
    # One subject with thousands of names can be the value of thousands of statements.
    names: dict[Subject, str | None] = field(default_factory=dict)
    heads: dict[Subject, _Head] = field(default_factory=dict)

    def cards(self) -> Cards:
        nested = self._nested()
        subjects = [subject for subject in self._ordered() if subject not in nested]
        shown = subjects[:MAX_CARDS]
        self.anchors = {subject: f"card-{number}" for number, subject in enumerate(shown, 1)}
        cards = tuple(self._card(subject, ()) for subject in shown)
        return Cards(cards, len(subjects) - len(shown))

    def _nested(self) -> frozenset[Subject]:
        """The blank nodes that are shown where they are referenced: once, and not in a cycle."""
        references = Counter(o for _, _, o in self.graph if isinstance(o, BlankNode))
        referrer = {o: s for s, _, o in self.graph if isinstance(o, BlankNode)}
        # Whether the chain of references to a node begins at something with a card of its own.
        anchored: dict[Subject, bool] = {}
        for node in references:
            chain: dict[Subject, None] = {}
            at: Subject = node
            while isinstance(at, BlankNode) and references[at] == 1:
                if at in chain or at in anchored:
                    break
                chain[at] = None
                at = referrer[at]
            known = anchored.get(at, at not in chain)
            anchored.update(dict.fromkeys(chain, known))
        return frozenset(node for node, known in anchored.items() if known)

    def _ordered(self) -> list[Subject]:
        """All subjects: what the document is about, the document's own things, then the others."""
        subjects = self.graph.subjects()
        document = Iri(self.links.document_url)
        topics = set(self.graph.objects(document, _TOPIC))
        own = self.links.document_url + "#"

        def rank(subject: Subject) -> int:
            if subject in topics or subject.value == own + "me":
                return 0
            if isinstance(subject, Iri) and (subject == document or subject.value.startswith(own)):
                return 2 if subject == document and len(subjects) > 1 else 1
            return 4 if isinstance(subject, BlankNode) else 3

        return sorted(subjects, key=rank)

    def _card(self, subject: Subject, path: tuple[Subject, ...]) -> Card:
        description = self.graph.about(subject)
        properties = [
            self._property(predicate, objects, (*path, subject))
            for predicate, objects in islice(description.items(), MAX_PROPERTIES)
            if predicate != _TYPE and not self._is_the_picture(predicate, objects)
        ]
        iri = subject.value if isinstance(subject, Iri) else None
        head = self._head(subject)
        return Card(
            title=head.title,
            iri=iri,
            anchor=self.anchors.get(subject, ""),
            link=self.links.of(iri) if iri else None,
            types=head.types,
            picture=head.picture,
            properties=tuple(properties),
            more=max(0, len(description) - MAX_PROPERTIES),
        )

    def _head(self, subject: Subject) -> _Head:
        known = self.heads.get(subject)
        if known is not None:
            return known
        iri = subject.value if isinstance(subject, Iri) else None
        types = [o for o in self.graph.objects(subject, _TYPE) if isinstance(o, Iri)]
        type_names = dict.fromkeys(
            labels.name_of_iri(type_.value, self.language) for type_ in types[:8]
        )
        title = self._name(subject) or (
            labels.last_segment(iri) if iri else next(iter(type_names), "")
        )
        head = self.heads[subject] = _Head(title, tuple(type_names), self._picture(subject))
        return head

    def _name(self, subject: Subject) -> str | None:
        """The name that the document itself gives to a subject."""
        if subject not in self.names:
            self.names[subject] = labels.name_in(self.graph, subject, self.language)
        return self.names[subject]

    def _is_the_picture(self, predicate: Iri, objects: Sequence[Object]) -> bool:
        """Whether a property is only the picture that the head of the card shows."""
        return (
            predicate in PICTURES
            and len(objects) == 1
            and isinstance(objects[0], Iri)
            and self.links.picture(objects[0].value) is not None
        )

    def _picture(self, subject: Subject) -> str | None:
        description = self.graph.about(subject)
        for predicate in PICTURES:
            for value in description.get(predicate, ()):
                if isinstance(value, Iri) and (found := self.links.picture(value.value)):
                    return found
        return None

    def _property(
        self, predicate: Iri, objects: Sequence[Object], path: tuple[Subject, ...]
    ) -> CardProperty:
        values: list[CardValue] = []
        flat = self._flattened(objects)
        more = 0
        for value in flat:
            self.steps += 1
            if len(values) >= MAX_VALUES or self.steps > _MAX_STEPS:
                more += 1
                continue
            values.append(self._value(value, predicate, path))
        name = labels.name_of_iri(predicate.value, self.language)
        return CardProperty(name, predicate.value, tuple(values), more)

    def _flattened(self, objects: Sequence[Object]) -> Iterator[Object]:
        """The values, with lists replaced by their items."""
        for value in objects:
            if not isinstance(value, BlankNode) or not self.graph.objects(value, _FIRST):
                yield value
                continue
            cell: Object = value
            seen: set[Object] = set()
            while isinstance(cell, BlankNode) and cell not in seen and self.walked < _MAX_WALKED:
                seen.add(cell)
                self.walked += 1
                yield from self.graph.objects(cell, _FIRST)[:1]
                cell = next(iter(self.graph.objects(cell, _REST)), _NIL)

    def _value(self, value: Object, predicate: Iri, path: tuple[Subject, ...]) -> CardValue:
        if isinstance(value, Literal):
            return _literal(value)
        if isinstance(value, Iri):
            return self._link(value, predicate)
        anchor = self.anchors.get(value)
        if anchor is not None:
            title = self._name(value) or "…"
            return CardValue(ValueKind.LINK, title, link=Address(f"#{anchor}", external=False))
        if value in path or len(path) > _MAX_DEPTH or not self.graph.about(value):
            return CardValue(ValueKind.TEXT, "…")
        card = self._card(value, path)
        return CardValue(ValueKind.CARD, card.title, card=card)

    def _link(self, iri: Iri, predicate: Iri) -> CardValue:
        anchor = self.anchors.get(iri)
        link = Address(f"#{anchor}", external=False) if anchor else self.links.of(iri.value)
        picture = self.links.picture(iri.value) if predicate in PICTURES else None
        text = self._name(iri)
        if text is None:
            text = labels.name_of_iri(iri.value, self.language)
            if link is not None and link.external:
                text = _address(iri.value)
        return CardValue(ValueKind.LINK, text, iri.value, link, picture)


def _address(iri: str) -> str:
    """An external address as people write it: the person sees where a link leads."""
    for prefix in ("https://", "http://", "mailto:", "tel:"):
        if iri.startswith(prefix):
            return labels.shortened(iri[len(prefix) :].rstrip("/"), 80)
    return labels.shortened(iri, 80)


def _literal(value: Literal) -> CardValue:
    kind = _VALUE_KINDS.get(value.datatype.value, ValueKind.TEXT)
    text = labels.shortened(value.value, labels.MAX_LITERAL_CHARACTERS)
    if kind is ValueKind.BOOLEAN:
        text = "true" if value.value in {"true", "1"} else "false"
    return CardValue(kind, text, language=value.language)


MAX_STATEMENTS: Final = 500


@dataclass(frozen=True, slots=True)
class WrittenTerm:
    """A term as it is written in the table. ``note`` is a literal's language or datatype."""

    text: str
    iri: str | None = None
    link: Address | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class StatementRow:
    """One row. ``graph`` is ``None`` in the default graph."""

    subject: WrittenTerm
    predicate: WrittenTerm
    object: WrittenTerm
    graph: WrittenTerm | None = None


@dataclass(frozen=True, slots=True)
class Statements:
    """The first statements of a document and how many it has."""

    rows: tuple[StatementRow, ...]
    total: int

    @property
    def more(self) -> int:
        return self.total - len(self.rows)

    @property
    def has_graphs(self) -> bool:
        return any(row.graph is not None for row in self.rows)


def read_statements(dataset: Dataset, links: Links) -> Statements:
    """The table of a document."""
    rows: list[StatementRow] = []
    for name, graph in ((None, dataset.default), *dataset.named.items()):
        written = None if name is None else _node(name, links)
        for subject, predicate, value in islice(graph, MAX_STATEMENTS - len(rows)):
            rows.append(
                StatementRow(
                    _node(subject, links), _node(predicate, links), _object(value, links), written
                )
            )
    return Statements(tuple(rows), len(dataset))


def _object(value: Object, links: Links) -> WrittenTerm:
    if not isinstance(value, Literal):
        return _node(value, links)
    note = value.language
    datatype = value.datatype.value
    if note is None and datatype != vocab.XSD_STRING:
        note = labels.term_text(datatype)
    return WrittenTerm(labels.shortened(value.value, labels.MAX_LITERAL_CHARACTERS), note=note)


def _node(term: Subject | GraphName, links: Links) -> WrittenTerm:
    if not isinstance(term, Iri):
        return WrittenTerm(labels.subject_text(term))
    own = links.document_url
    iri = term.value
    text = (
        f"<{iri[len(own) :]}>" if iri == own or iri.startswith(own + "#") else labels.term_text(iri)
    )
    return WrittenTerm(text, iri, links.of(iri))
