"""Evaluating SPARQL 1.1 Query over documents in memory.

Each document is a named graph with its URL, and the default graph has the statements of all of
them. Blank nodes of two documents are never the same. Nothing is ever fetched: queries that name
``SERVICE`` are refused before they are evaluated.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec
import pyoxigraph
from pyoxigraph import BlankNode, DefaultGraph, Quad, QueryResultsFormat, Store
from pyoxigraph import NamedNode as Iri

from podstead.core.errors import BadRequest, Unprocessable
from podstead.rdf.codecs import FORMATS
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.graph import Graph, Subject, Triple
from podstead.rdf.lexing import Lexer, Token, TokenKind, line_of

SPARQL_QUERY: Final = "application/sparql-query"
MAX_QUERY_CHARS: Final = 64 * 1024
MAX_DEPTH: Final = 64
"""How deeply the brackets of a query may be nested: the library calls itself for each level."""
MAX_CLAUSES: Final = 100

_RESULTS: Final = MappingProxyType(
    {
        "application/sparql-results+json": QueryResultsFormat.JSON,
        "application/sparql-results+xml": QueryResultsFormat.XML,
        "text/csv": QueryResultsFormat.CSV,
        "text/tab-separated-values": QueryResultsFormat.TSV,
    }
)
RESULT_TYPES: Final = tuple(_RESULTS)
"""The media types of the results of SELECT and ASK."""
GRAPH_TYPES: Final = tuple(FORMATS)
"""The media types of the results of CONSTRUCT and DESCRIBE."""

_OPENING: Final = frozenset("{([")
_CLOSING: Final = frozenset("})]")


class QueryForm(Enum):
    """What a query asks for."""

    SELECT = "SELECT"
    ASK = "ASK"
    CONSTRUCT = "CONSTRUCT"
    DESCRIBE = "DESCRIBE"

    @property
    def types(self) -> Sequence[str]:
        """The media types of its results."""
        return RESULT_TYPES if self in (QueryForm.SELECT, QueryForm.ASK) else GRAPH_TYPES


class DatasetClause(msgspec.Struct, frozen=True):
    """FROM or FROM NAMED: the name of the graph as written, and where the clause is."""

    name: str
    is_named: bool
    start: int
    end: int


class SparqlQuery(msgspec.Struct, frozen=True):
    """A query, and the graphs that it is about: ``None`` for all documents.

    ``base_iri`` is what relative IRIs are resolved against. Without graphs of the request, those of
    ``clauses`` count, whose names the ``prologue`` explains.
    """

    text: str
    base_iri: str
    form: QueryForm
    prologue: str = ""
    clauses: tuple[DatasetClause, ...] = ()
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    is_ordered: bool = False
    """Whether it gives its results an order."""


_Names = list[Any] | None


class ResultOutput(Protocol):
    """Takes the result in pieces."""

    def write(self, piece: bytes, /) -> int: ...


def parse_query(
    text: str,
    *,
    base_iri: str,
    default_graphs: Sequence[str] = (),
    named_graphs: Sequence[str] = (),
) -> SparqlQuery:
    """The query with its dataset: that of the request precedes its own, in ``FROM`` and
    ``FROM NAMED``, as SPARQL 1.1 Protocol says.

    Its grammar is only checked by :meth:`QueryStore.evaluate`. Raises MalformedRdf, Unprocessable
    for SERVICE, and BadRequest for a query that is too long or nested too deeply.
    """
    if len(text) > MAX_QUERY_CHARS:
        raise BadRequest(f"A query has at most {MAX_QUERY_CHARS} characters")
    for each in (*default_graphs, *named_graphs):
        try:
            Iri(each)
        except ValueError as error:
            raise BadRequest("The names of graphs are absolute IRIs") from error
    form, start, clauses, is_ordered = _scanned(text)
    return SparqlQuery(
        _without(text, clauses),
        base_iri,
        form,
        text[:start],
        tuple(clauses),
        tuple(default_graphs),
        tuple(named_graphs),
        is_ordered,
    )


def _scanned(text: str) -> tuple[QueryForm, int, Sequence[DatasetClause], bool]:
    """The form of the query, where its prologue ends, its clauses about the dataset, and whether it
    has ORDER BY outside of subqueries."""
    form, start, depth, is_ordered = None, 0, 0, False
    clauses: list[DatasetClause] = []
    pending: list[Token] = []
    for token in _checked_tokens(text):
        word = token.text.upper() if token.kind is TokenKind.WORD else ""
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        is_ordered = is_ordered or (word == "ORDER" and depth == 0)
        if form is None and word in QueryForm.__members__:
            form, start = QueryForm[word], token.start
        if word == "FROM" or (word == "NAMED" and len(pending) == 1):
            pending.append(token)
        elif pending:
            if token.kind in (TokenKind.IRI, TokenKind.NAME):
                is_named = len(pending) > 1
                if len(clauses) >= MAX_CLAUSES:
                    raise BadRequest(f"A query has at most {MAX_CLAUSES} FROM clauses")
                clauses.append(DatasetClause(token.text, is_named, pending[0].start, token.end))
            pending = []
    if form is None:
        raise MalformedRdf(SPARQL_QUERY, "it is neither SELECT, ASK, CONSTRUCT nor DESCRIBE")
    return form, start, clauses, is_ordered


def _checked_tokens(text: str) -> Iterator[Token]:
    """The tokens of the query. Raises MalformedRdf, BadRequest and Unprocessable."""
    lexer, depth = Lexer(text, SPARQL_QUERY), 0
    while (token := lexer.next()) is not None:
        # A word includes the dots in it, which end the statement before a keyword.
        if token.kind is TokenKind.WORD and "SERVICE" in token.text.upper().split("."):
            line = line_of(text, token.start)
            raise Unprocessable(f"Line {line}: SERVICE is off. This server asks no others.")
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth > MAX_DEPTH:
            raise BadRequest(f"The brackets of a query are nested {MAX_DEPTH} deep at most")
        yield token


def _resolved(query: SparqlQuery) -> tuple[list[Iri], list[Iri]] | None:
    """The default and the named graphs of a query; ``None`` for all documents."""
    if query.default_graphs or query.named_graphs:
        return [Iri(each) for each in query.default_graphs], [
            Iri(each) for each in query.named_graphs
        ]
    if not query.clauses:
        return None
    rows = " ".join(f"({number} {each.name})" for number, each in enumerate(query.clauses))
    text = f"{query.prologue} SELECT * {{ VALUES (?number ?graph) {{ {rows} }} }}"
    try:
        found: Any = Store().query(text, base_iri=query.base_iri)
    except SyntaxError as error:
        raise _malformed(error) from error
    graphs = {int(row["number"].value): row["graph"] for row in found}
    chosen: tuple[list[Iri], list[Iri]] = [], []
    for number, each in enumerate(query.clauses):
        chosen[each.is_named].append(graphs[number])
    return chosen


def _without(text: str, clauses: Sequence[DatasetClause]) -> str:
    """The text with blanks for the clauses, so that positions in it stay the same."""
    for each in clauses:
        blank = "".join(" " if char != "\n" else char for char in text[each.start : each.end])
        text = text[: each.start] + blank + text[each.end :]
    return text


def _malformed(error: SyntaxError) -> MalformedRdf:
    reason = str(error.msg)
    # The library lists all characters that may begin a name.
    reason = reason.partition("expected one of")[0].rstrip(": ") or "it cannot be read"
    return MalformedRdf(SPARQL_QUERY, reason[:300])


class QueryStore:
    """The documents that queries are about."""

    def __init__(self) -> None:
        self._store = Store()

    def put(self, url: str, graph: Graph) -> None:
        """Add a document."""
        name = Iri(url)
        labels: dict[Subject, BlankNode] = {}
        triples = [_relabelled(triple, labels) for triple in graph]
        self._store.extend([Quad(*triple, name) for triple in triples])
        self._store.extend([Quad(*triple) for triple in triples])

    def remove(self, url: str) -> None:
        """Remove a document. What others say as well stays in the default graph."""
        store, name = self._store, Iri(url)
        quads = list(store.quads_for_pattern(None, None, None, name))
        store.remove_graph(name)
        for subject, predicate, object_, _ in quads:
            said = store.quads_for_pattern(subject, predicate, object_, None)
            if all(isinstance(each.graph_name, DefaultGraph) for each in said):
                store.remove(Quad(subject, predicate, object_))

    def evaluate(self, query: SparqlQuery, media_type: str, output: ResultOutput) -> None:
        """Write the result in a media type of its form. Raises MalformedRdf, and what ``output``
        raises."""
        store, default, named = self._chosen(query)
        try:
            result = store.query(
                query.text, base_iri=query.base_iri, default_graph=default, named_graphs=named
            )
        except SyntaxError as error:
            raise _malformed(error) from error
        try:
            if isinstance(result, pyoxigraph.QueryTriples):
                result.serialize(output, FORMATS[media_type])  # type: ignore[arg-type]
            else:
                result.serialize(output, _RESULTS[media_type])  # type: ignore[arg-type]
        except (ValueError, OSError) as error:  # also of SERVICE, had it not been refused
            raise Unprocessable(
                f"There is no result as {media_type}: {str(error)[:300]}"
            ) from error

    def _chosen(self, query: SparqlQuery) -> tuple[Store, _Names, _Names]:
        """A store, and the graphs in it that the query is about; ``None`` for all."""
        resolved = _resolved(query)
        if resolved is None:
            return self._store, None, None
        default, named = (list(dict.fromkeys(each)) for each in resolved)
        if len(default) <= 1:
            return self._store, default, named
        # The library would find a statement once for each graph of the default graph that has it.
        merged = Store()
        for name in default:
            quads = self._store.quads_for_pattern(None, None, None, name)
            merged.extend([Quad(*quad.triple) for quad in quads])
        for name in named:
            merged.extend(list(self._store.quads_for_pattern(None, None, None, name)))
        return merged, None, None


def _relabelled(triple: Triple, labels: dict[Subject, BlankNode]) -> Triple:
    """The triple with blank nodes that no other document has."""
    subject, predicate, object_ = triple
    if type(subject) is BlankNode:
        subject = labels.setdefault(subject, BlankNode())
    if type(object_) is BlankNode:
        object_ = labels.setdefault(object_, BlankNode())
    return subject, predicate, object_
