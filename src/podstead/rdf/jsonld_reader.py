"""Preparing a JSON-LD document for the parser: without references to contexts, and within limits.

A document is decoded, checked, and encoded again for the parser (see ``json_text`` for the reason).
The contexts that it refers to are inlined, and type maps are expanded, because the parser does not
support them. Input that would make the parser abort or run for seconds is refused: lists in the
place of graphs, and contexts that are activated too often.

All of this concerns contexts only. A document without any, or whose only context needs no
preparation, is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from podstead.core.media_types import JSON_LD
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.json_text import Json, decode_json, encode_json
from podstead.rdf.jsonld_contexts import NO_CONTEXTS, ContextSource, absolute_references
from podstead.rdf.jsonld_cost import (
    NOT_NODES,
    check_context_work,
    check_definitions,
    check_expanded_size,
)
from podstead.rdf.jsonld_inlining import ReachableContexts, names_in, refers
from podstead.rdf.limits import DEFINITION_WORK, RdfLimits

_CONTEXT_KEY: Final = encode_json("@context")
_MAX_CACHED_CONTEXT_BYTES: Final = 4096


def prepare_json_ld(
    content: bytes, *, base_iri: str, contexts: ContextSource, limits: RdfLimits
) -> bytes:
    """Return a document with the same meaning but without references to contexts.

    Raises MalformedRdf, RdfTooComplex and UnknownContext.
    """
    document = decode_json(content, max_depth=limits.max_depth)
    if not isinstance(document, dict | list):  # JSON-LD 1.1 section 9
        raise MalformedRdf(JSON_LD, "a document is an object or an array of objects")
    encoded = encode_json(document)
    # The encoder writes every key in this form, also that of a context within a context. Texts may
    # contain it too, which costs time only.
    contexts_at_most = encoded.count(_CONTEXT_KEY)
    if contexts_at_most == 0:
        return encoded
    names = encoded.count(b'"') // 2
    if contexts_at_most == 1 and _needs_no_change(document, limits, names):
        return encoded
    return encode_json(
        prepared(document, base_iri=base_iri, contexts=contexts, limits=limits, names=names)
    )


def prepared(
    document: Json, *, base_iri: str, contexts: ContextSource, limits: RdfLimits, names: int
) -> Json:
    """As :func:`prepare_json_ld`, for a decoded document with at most ``names`` names and any
    contexts.

    Changes the document in place, so that the checks see what the parser will see.
    """
    survey = _survey(document, base_iri, contexts, limits)
    reachable, anywhere = survey.reachable, survey.anywhere
    for holder in survey.holders:
        absolute = absolute_references(holder["@context"], base_iri=base_iri)
        holder["@context"] = reachable.inline(absolute)
    if reachable.type_map_terms:
        _unfold_type_maps(document, reachable)
    if anywhere.graph_terms:
        _check_graphs(document, anywhere)
    for holder in survey.all_holders:
        check_definitions(holder["@context"], max_depth=limits.max_depth)
    check_expanded_size(
        [holder["@context"] for holder in survey.all_holders],
        names=names,
        max_bytes=limits.max_expanded_bytes,
    )
    # A single context without scoped ones is activated once, and inlining has bounded its size.
    if len(survey.all_holders) > 1 or anywhere.scoped_terms:
        check_context_work(document, survey.all_holders, max_work=limits.max_context_work)
    return document


def _needs_no_change(document: Json, limits: RdfLimits, names: int) -> bool:
    """Whether the only context of a document is at its top and has no effect on its preparation.

    Raises MalformedRdf, RdfTooComplex and RdfTooLarge.
    """
    context = document.get("@context") if isinstance(document, dict) else None
    if not isinstance(context, dict):
        return False
    encoded = encode_json(context)
    if len(encoded) > _MAX_CACHED_CONTEXT_BYTES:
        return False
    # No name is longer than all of the context.
    if len(encoded) * names > limits.max_expanded_bytes:
        check_expanded_size([context], names=names, max_bytes=limits.max_expanded_bytes)
    return _is_plain(encoded, limits.max_depth, limits.max_context_work)


@lru_cache(maxsize=512)
def _is_plain(encoded_context: bytes, max_depth: int, max_context_work: int) -> bool:
    """Whether a context without scoped contexts is parsed as it is and makes no value dangerous.

    This depends on the context and the limits only: not on the rest of the document, its base IRI
    or the available contexts. Raises MalformedRdf and RdfTooComplex.
    """
    context = decode_json(encoded_context, max_depth=max_depth)
    if not isinstance(context, dict) or "@import" in context:
        return False
    terms = ReachableContexts(
        [context], names=None, contexts=NO_CONTEXTS, max_terms=max_context_work // DEFINITION_WORK
    )
    if terms.type_map_terms or terms.graph_terms:
        return False
    check_definitions(context, max_depth=max_depth)
    return True


@dataclass(frozen=True, slots=True)
class _Survey:
    """The objects that hold a context, and what these contexts define.

    ``holders`` and ``reachable`` leave out what is inside JSON literals. A term may be of type
    ``@json`` in one place and not in another, so the parser may see more than that: limits and
    checks go by ``all_holders`` and ``anywhere``.
    """

    holders: list[dict[str, Json]]
    reachable: ReachableContexts
    all_holders: list[dict[str, Json]]
    anywhere: ReachableContexts


def _survey(document: Json, base_iri: str, contexts: ContextSource, limits: RdfLimits) -> _Survey:
    holders = _context_holders(document)
    reachable = _reachable(document, holders, base_iri, contexts, limits)
    if reachable.json_terms:
        # The value of such a term is JSON, not JSON-LD: a "@context" in it is an ordinary key.
        nodes = _context_holders(document, reachable.json_terms)
        if len(nodes) < len(holders):
            of_nodes = _reachable(document, nodes, base_iri, contexts, limits)
            return _Survey(nodes, of_nodes, holders, reachable)
    return _Survey(holders, reachable, holders, reachable)


def _reachable(
    document: Json,
    holders: list[dict[str, Json]],
    base_iri: str,
    contexts: ContextSource,
    limits: RdfLimits,
) -> ReachableContexts:
    references = [absolute_references(holder["@context"], base_iri=base_iri) for holder in holders]
    return ReachableContexts(
        references,
        names=set(names_in(document)) if any(map(refers, references)) else None,
        contexts=contexts,
        max_terms=limits.max_context_terms,
    )


def _context_holders(
    document: Json, json_terms: frozenset[str] | set[str] = frozenset()
) -> list[dict[str, Json]]:
    """The objects of a document that have their own context, in document order."""
    holders = []
    pending = [document]  # a stack, hence the reversals
    while pending:
        current = pending.pop()
        if isinstance(current, list):
            pending.extend(reversed(current))
        elif isinstance(current, dict):
            if "@context" in current:
                holders.append(current)
            pending.extend(
                value
                for key, value in reversed(current.items())
                if key not in NOT_NODES and key not in json_terms
            )
    return holders


def _unfold_type_maps(document: Json, reachable: ReachableContexts) -> None:
    """Turn ``"term": {"Type": node}`` into ``"term": [{"@type": "Type", …node}]`` everywhere."""
    for holder in _objects(document):
        for term in reachable.type_map_terms.intersection(holder):
            value = holder[term]
            if isinstance(value, dict):
                # _objects continues with the new value, so maps within maps are found.
                holder[term] = [
                    node if type_ in reachable.none_names else _typed(type_, node)
                    for type_, nodes in value.items()
                    for node in (nodes if isinstance(nodes, list) else [nodes])
                ]


def _check_graphs(document: Json, reachable: ReachableContexts) -> None:
    """Refuse a list or set where a graph is expected.

    The parser would abort the whole process, so there would be no exception to catch.
    """
    for holder in _objects(document):
        for term in reachable.graph_terms.keys() & holder.keys():
            kinds = reachable.graph_terms[term]
            is_map = "@index" in kinds or "@id" in kinds
            _check_graph(holder[term], reachable, is_map=is_map)


def _check_graph(value: Json, reachable: ReachableContexts, *, is_map: bool) -> None:
    pending = [(value, is_map)]
    while pending:
        current, may_be_map = pending.pop()
        if isinstance(current, list):
            pending.extend((part, may_be_map) for part in current)
        elif isinstance(current, dict):
            if not reachable.array_names.isdisjoint(current):
                raise MalformedRdf(JSON_LD, "a list or set cannot be used as a graph")
            if may_be_map:  # or a single graph, whose values pass this check as well
                pending.extend((part, False) for part in current.values())


def _typed(type_: str, node: Json) -> Json:
    if isinstance(node, str):
        node = {"@id": node}
    if not isinstance(node, dict):
        raise MalformedRdf(JSON_LD, "a type map can contain nodes only")
    own = node.get("@type", [])
    types: list[Json] = [type_, *(own if isinstance(own, list) else [own])]
    return {**node, "@type": types}


def _objects(document: Json) -> Iterator[dict[str, Json]]:
    """Every object of a document outside its contexts and literals, outer before inner."""
    pending = [document]
    while pending:
        current = pending.pop()
        if isinstance(current, list):
            pending.extend(current)
        elif isinstance(current, dict):
            yield current
            pending.extend(value for key, value in current.items() if key not in NOT_NODES)
