"""Lists linked data as a table of statements: subject, property, value."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from podstead.core import vocab
from podstead.previews.links import Address, Links
from podstead.previews.words import MAX_LITERAL_CHARACTERS, shortened, subject_text, term_text
from podstead.rdf.graph import Dataset
from podstead.rdf.terms import GraphName, Iri, Literal, Object, Subject

MAX_STATEMENTS: Final = 500


@dataclass(frozen=True, slots=True)
class WrittenTerm:
    """A term as it is written in the table. ``note`` is a literal's language or datatype."""

    text: str
    iri: str | None = None
    link: Address | None = None
    note: str | None = None
    is_literal: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One row. ``graph`` is ``None`` in the default graph."""

    subject: WrittenTerm
    predicate: WrittenTerm
    object: WrittenTerm
    graph: WrittenTerm | None = None


@dataclass(frozen=True, slots=True)
class Statements:
    """The first statements of a document and how many it has."""

    rows: tuple[Statement, ...]
    total: int

    @property
    def more(self) -> int:
        return self.total - len(self.rows)

    @property
    def has_graphs(self) -> bool:
        return any(row.graph is not None for row in self.rows)


def read_statements(dataset: Dataset, links: Links) -> Statements:
    """The table of a document."""
    rows: list[Statement] = []
    for name, graph in ((None, dataset.default), *dataset.named.items()):
        written = None if name is None else _node(name, links)
        for subject, predicate, value in islice(graph, MAX_STATEMENTS - len(rows)):
            rows.append(
                Statement(
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
        note = term_text(datatype)
    return WrittenTerm(shortened(value.value, MAX_LITERAL_CHARACTERS), note=note, is_literal=True)


def _node(term: Subject | GraphName, links: Links) -> WrittenTerm:
    if not isinstance(term, Iri):
        return WrittenTerm(subject_text(term))
    own = links.document_url
    iri = term.value
    text = f"<{iri[len(own) :]}>" if iri == own or iri.startswith(own + "#") else term_text(iri)
    return WrittenTerm(text, iri, links.of(iri))
