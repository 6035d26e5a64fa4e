"""Choosing the term for a value, and compacting the value under it.

Implements JSON-LD 1.1 API, sections 6.3 (value compaction) and 7.4 (term selection). A term with a
coercion is used only for values that the coercion yields from plain JSON; a term without one is
used for any value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from podstead.core import vocab
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.graph import Description
from podstead.rdf.json_text import Json, decode_json
from podstead.rdf.jsonld_terms import Term, TermTable
from podstead.rdf.jsonld_writer import native_value
from podstead.rdf.terms import BlankNode, Iri, Literal, Object, Subject

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
    value: Value, terms: Sequence[Term], chosen: Mapping[Term, object], table: TermTable
) -> Term | None:
    """The best matching term for a value, if any; ``chosen`` are the terms that have values
    already."""
    # Ties are resolved by length and then alphabetically, so that the result is deterministic.
    best: tuple[int, int, str, Term] | None = None
    for term in terms:
        rank = _rank(value, term, table)
        if rank is None or (term in chosen and _holds_one(term)):
            continue
        candidate = (rank, len(term.name), term.name, term)
        if best is None or candidate[:3] < best[:3]:
            best = candidate
    return None if best is None else best[3]


def _holds_one(term: Term) -> bool:
    """Whether an array under the term is a single value: a list, or a JSON literal."""
    return "@list" in term.container or term.coercion == "@json"


def _rank(value: Value, term: Term, table: TermTable) -> int | None:
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


def _rank_in_list(value: Value, term: Term, table: TermTable) -> int | None:
    if not isinstance(value, ListValue):
        return None
    fits = all(
        bare(item, term) is not None
        if isinstance(item, Literal)
        else _is_bare_node(item, term, table)
        for item in value.items
    )
    return 0 if fits else 1


def _is_bare_node(value: Iri | BlankNode | NodeValue, term: Term, table: TermTable) -> bool:
    if term.coercion == "@vocab":
        return isinstance(value, Iri) and ":" not in table.type_name(value.value)
    return term.coercion == "@id"


def bare(literal: Literal, term: Term) -> tuple[Json] | None:
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
