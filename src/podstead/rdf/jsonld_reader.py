"""Preparing a JSON-LD document for the parser: without references to contexts, and within limits.

A document is decoded, checked, and encoded again for the parser (``jsonld_contexts`` has the
reason). The contexts that it refers to are inlined, and type maps are expanded, because the parser
does not support them. Input that would make the parser abort or run for seconds is refused: lists
in the place of graphs, and contexts that are activated too often.

All of this concerns contexts only. A document without any, or whose only context needs no
preparation, is passed on as it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from podstead.core.media_types import JSON_LD
from podstead.rdf import jsonld_contexts
from podstead.rdf.errors import MalformedRdf, RdfTooComplex, RdfTooLarge
from podstead.rdf.limits import DEFINITION_WORK, RdfLimits

# Estimates what the contexts of a JSON-LD document cost the parser.
#
# The parser copies all active terms whenever a context changes them, processes a scoped context
# again wherever it takes effect, and follows references between definitions by recursion. A
# document of a hundred kilobytes could keep it busy for minutes with the former, and overflow the
# stack of the process with the latter. The costs are computed here, on the document as the parser
# would receive it, and so is the length of names whose definitions build on one another.

# Keys whose values are not nodes: a context, or a literal (which can be any JSON).
NOT_NODES = frozenset({"@context", "@value"})

_COPIES_OF_SCOPED: Final = 3
"""How often defining a scoped context copies the terms, besides once for the context itself."""
_STARTS: Final = frozenset({"@vocab", "@base"})
"""What names without a prefix begin with."""


def check_definitions(context: jsonld_contexts.Json, *, max_depth: int) -> None:
    """Refuse a context with a chain of more than ``max_depth`` definitions.

    A definition depends on those of the terms and prefixes that it uses, and on those of its scoped
    context. On a stack of 1 MiB, the parser handles 478; contexts in use have 5. Raises
    RdfTooComplex.
    """
    # A chain cannot be longer than the number of definitions, so nearly all contexts need no
    # search.
    if _count_definitions(context) > max_depth and _definition_depth(context) > max_depth:
        raise RdfTooComplex(JSON_LD, "the chain of definitions in its contexts is too long")


def _definition_depth(context: jsonld_contexts.Json) -> int:
    """The length of the longest chain of definitions; those in cycles are all added to it."""
    if isinstance(context, list):
        return max(map(_definition_depth, context), default=0)
    if not isinstance(context, dict):
        return 0
    needs = {term: _needed_terms(term, context) for term in context}
    needed_by: dict[str, list[str]] = {}
    for term, needed in needs.items():
        for other in needed:
            needed_by.setdefault(other, []).append(term)
    depths: dict[str, int] = {}
    longest = 0
    ready = [term for term, needed in needs.items() if not needed]
    while ready:
        term = ready.pop()
        own_depth = depths.get(term, 0) + 1
        longest = max(longest, own_depth + _scoped_depth(context[term]))
        for other in needed_by.get(term, ()):
            depths[other] = max(depths.get(other, 0), own_depth)
            needs[other].discard(term)
            if not needs[other]:
                ready.append(other)
    circular = [context[term] for term, needed in needs.items() if needed]
    return longest + len(circular) + max(map(_scoped_depth, circular), default=0)


def _needed_terms(term: str, context: dict[str, jsonld_contexts.Json]) -> set[str]:
    definition = context[term]
    if isinstance(definition, dict):
        definition = {key: value for key, value in definition.items() if key != "@context"}
    return {
        name
        for name in jsonld_contexts.names_in([term, definition])
        if name in context and name != term
    }


def _scoped_depth(definition: jsonld_contexts.Json) -> int:
    if isinstance(definition, dict) and "@context" in definition:
        return _definition_depth(definition["@context"])
    return 0


def check_context_work(
    document: jsonld_contexts.Json,
    holders: Iterable[dict[str, jsonld_contexts.Json]],
    *,
    max_work: int,
) -> None:
    """Bound the work that the contexts of a document cause the parser, in units of 130 ns.

    A context costs something wherever it takes effect: at the objects that hold it (``holders`` are
    all of them), and, if it is the scoped context of a term, wherever that term is a key or a value
    (a type). Raises RdfTooComplex.
    """
    costs = _ContextCosts()
    for holder in holders:
        costs.of(holder["@context"])
    work_left = max_work
    pending: list[tuple[jsonld_contexts.Json, int]] = [(document, 0)]
    while pending:
        current, terms = pending.pop()
        if isinstance(current, list):
            pending.extend((value, terms) for value in current)
            continue
        if not isinstance(current, dict):
            continue
        if "@context" in current:
            cost = costs.of(current["@context"])
            work_left -= cost.at(terms)
            terms += cost.definitions
        if costs.scoped:
            work, terms = _scoped_work(current, terms, costs.scoped)
            work_left -= work
        if work_left < 0:
            raise RdfTooComplex(JSON_LD, "its contexts are activated too often")
        pending.extend((value, terms) for key, value in current.items() if key not in NOT_NODES)


def _scoped_work(
    node: dict[str, jsonld_contexts.Json], terms: int, scoped: Mapping[str, "_Cost"]
) -> tuple[int, int]:
    """The work of the scoped contexts that take effect in a node, and how many terms are active in
    its values at most."""
    work, most = 0, terms
    for key, value in node.items():
        values = value if isinstance(value, list) else [value]
        cost = scoped.get(key)
        if cost is not None:
            work += cost.at(terms) * len(values)
            most += cost.definitions
        for one in values:
            if isinstance(one, str) and (cost := scoped.get(one)) is not None:
                work += cost.at(terms) + terms  # the context without the type is kept for its nodes
                most += cost.definitions
    return work, most


class _Cost(NamedTuple):
    """The work of a context: ``fixed``, and ``copies`` of each term that is active before.

    ``definitions`` is how many terms it adds to these.
    """

    fixed: int = 0
    copies: int = 0
    definitions: int = 0

    def at(self, terms: int) -> int:
        return self.fixed + self.copies * terms


class _ContextCosts:
    """The costs of the contexts of one document, measured on the parser with ten to four thousand
    terms. A scoped context is processed where its term is defined, to find errors, and again
    wherever the term is used."""

    def __init__(self) -> None:
        self.scoped: dict[str, _Cost] = {}
        """The cost of the scoped contexts of each term; the highest, if contexts differ."""
        # By identity: inlining puts one object in many places. The object is kept with its cost.
        self._known: dict[int, tuple[jsonld_contexts.Json, _Cost]] = {}

    def of(self, context: jsonld_contexts.Json) -> _Cost:
        if not isinstance(context, dict | list):
            return _Cost()
        known = self._known.get(id(context))
        if known is None:
            cost = self._of_all(context) if isinstance(context, list) else self._of_part(context)
            known = self._known[id(context)] = context, cost
        return known[1]

    def _of_all(self, parts: list[jsonld_contexts.Json]) -> _Cost:
        fixed = copies = definitions = 0
        for part in parts:
            cost = self.of(part)
            fixed += cost.at(definitions)
            copies += cost.copies
            definitions += cost.definitions
        return _Cost(fixed, copies, definitions)

    def _of_part(self, context: dict[str, jsonld_contexts.Json]) -> _Cost:
        fixed, copies, definitions = 0, 1, 0
        for term, definition in context.items():
            fixed += DEFINITION_WORK
            definitions += 1
            if isinstance(definition, dict) and "@context" in definition:
                cost = self.of(definition["@context"])
                fixed += cost.at(definitions) + _COPIES_OF_SCOPED * definitions
                copies += cost.copies + _COPIES_OF_SCOPED
                other = self.scoped.get(term, cost)
                self.scoped[term] = _Cost(*map(max, cost, other))
        return _Cost(fixed, copies, definitions)


def check_expanded_size(
    contexts: Iterable[jsonld_contexts.Json], *, names: int, max_bytes: int
) -> None:
    """Bound the size of a document if all its ``names`` were as long as the longest that its
    contexts can produce: the parser keeps all of them in memory. Raises RdfTooLarge."""
    if longest_name(contexts) * names > max_bytes:
        raise RdfTooLarge(
            "The contexts of this document make its names too long: written in full, they can have "
            f"at most {max_bytes} bytes"
        )


def longest_name(contexts: Iterable[jsonld_contexts.Json]) -> int:
    """The maximum length of a name under the definitions of some contexts."""
    meanings: dict[str, set[str]] = {}
    longest_start = relative_length = 0
    for term, meant in _meanings(contexts):
        if term not in _STARTS:
            meanings.setdefault(term, set()).add(meant)
        elif ":" in meant:
            longest_start = max(longest_start, len(meant))
        else:  # added to the one before
            relative_length += len(meant)
    lengths: dict[str, int] = {}
    for term in meanings:
        _measure(term, meanings, lengths)
    return longest_start + relative_length + max(lengths.values(), default=0)


def _meanings(contexts: Iterable[jsonld_contexts.Json]) -> Iterator[tuple[str, str]]:
    """The terms and keywords of contexts and of scoped ones, with what they mean."""
    for part in jsonld_contexts.parts_of(contexts):
        for term, definition in part.items() if isinstance(part, dict) else ():
            meant = definition.get("@id") if isinstance(definition, dict) else definition
            if isinstance(meant, str):
                yield term, meant


def _measure(term: str, meanings: Mapping[str, set[str]], lengths: dict[str, int]) -> None:
    """Compute the length of a term's expansion, after those of the prefixes and terms that it
    uses."""
    pending = [term]
    while pending:
        current = pending[-1]
        uses = {
            used
            for meant in meanings[current]
            for used in (meant, meant.partition(":")[0])
            if used in meanings and used != current
        }
        if current not in lengths:
            lengths[current] = max(map(len, meanings[current]))  # also ends cycles
            pending.extend(used for used in uses if used not in lengths)
            continue
        pending.pop()
        used_length = max((lengths[used] for used in uses), default=0)
        lengths[current] = max(lengths[current], max(map(len, meanings[current])) + used_length)


def _count_definitions(context: jsonld_contexts.Json) -> int:
    """The number of definitions in a context, including those of its scoped contexts."""
    return sum(len(part) for part in jsonld_contexts.parts_of([context]) if isinstance(part, dict))


_CONTEXT_KEY: Final = jsonld_contexts.encode_json("@context")
_MAX_CACHED_CONTEXT_BYTES: Final = 4096


def prepare_json_ld(
    content: bytes, *, base_iri: str, contexts: jsonld_contexts.ContextSource, limits: RdfLimits
) -> bytes:
    """Return a document with the same meaning but without references to contexts.

    Raises MalformedRdf, RdfTooComplex and UnknownContext.
    """
    document = jsonld_contexts.decode_json(content, max_depth=limits.max_depth)
    if not isinstance(document, dict | list):  # JSON-LD 1.1 section 9
        raise MalformedRdf(JSON_LD, "a document is an object or an array of objects")
    encoded = jsonld_contexts.encode_json(document)
    # The encoder writes every key in this form, also that of a context within a context. Texts may
    # contain it too, which costs time only.
    contexts_at_most = encoded.count(_CONTEXT_KEY)
    if contexts_at_most == 0:
        return encoded
    names = encoded.count(b'"') // 2
    if contexts_at_most == 1 and _needs_no_change(document, limits, names):
        return encoded
    return jsonld_contexts.encode_json(
        prepared(document, base_iri=base_iri, contexts=contexts, limits=limits, names=names)
    )


def prepared(
    document: jsonld_contexts.Json,
    *,
    base_iri: str,
    contexts: jsonld_contexts.ContextSource,
    limits: RdfLimits,
    names: int,
) -> jsonld_contexts.Json:
    """As :func:`prepare_json_ld`, for a decoded document with at most ``names`` names and any
    contexts.

    Changes the document in place, so that the checks see what the parser will see.
    """
    survey = _survey(document, base_iri, contexts, limits)
    reachable, anywhere = survey.reachable, survey.anywhere
    for holder in survey.holders:
        absolute = jsonld_contexts.absolute_references(holder["@context"], base_iri=base_iri)
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


def _needs_no_change(document: jsonld_contexts.Json, limits: RdfLimits, names: int) -> bool:
    """Whether the only context of a document is at its top and has no effect on its preparation.

    Raises MalformedRdf, RdfTooComplex and RdfTooLarge.
    """
    context = document.get("@context") if isinstance(document, dict) else None
    if not isinstance(context, dict):
        return False
    encoded = jsonld_contexts.encode_json(context)
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
    context = jsonld_contexts.decode_json(encoded_context, max_depth=max_depth)
    if not isinstance(context, dict) or "@import" in context:
        return False
    terms = jsonld_contexts.ReachableContexts(
        [context],
        names=None,
        contexts=jsonld_contexts.NO_CONTEXTS,
        max_terms=max_context_work // DEFINITION_WORK,
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

    holders: list[dict[str, jsonld_contexts.Json]]
    reachable: jsonld_contexts.ReachableContexts
    all_holders: list[dict[str, jsonld_contexts.Json]]
    anywhere: jsonld_contexts.ReachableContexts


def _survey(
    document: jsonld_contexts.Json,
    base_iri: str,
    contexts: jsonld_contexts.ContextSource,
    limits: RdfLimits,
) -> _Survey:
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
    document: jsonld_contexts.Json,
    holders: list[dict[str, jsonld_contexts.Json]],
    base_iri: str,
    contexts: jsonld_contexts.ContextSource,
    limits: RdfLimits,
) -> jsonld_contexts.ReachableContexts:
    references = [
        jsonld_contexts.absolute_references(holder["@context"], base_iri=base_iri)
        for holder in holders
    ]
    return jsonld_contexts.ReachableContexts(
        references,
        names=set(jsonld_contexts.names_in(document))
        if any(map(jsonld_contexts.refers, references))
        else None,
        contexts=contexts,
        max_terms=limits.max_context_terms,
    )


def _context_holders(
    document: jsonld_contexts.Json, json_terms: frozenset[str] | set[str] = frozenset()
) -> list[dict[str, jsonld_contexts.Json]]:
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


def _unfold_type_maps(
    document: jsonld_contexts.Json, reachable: jsonld_contexts.ReachableContexts
) -> None:
    """Turn ``"term": {"Type": node}`` into ``"term": [{"@type": "Type", …node}]`` everywhere."""
    for holder in objects_of(document):
        for term in reachable.type_map_terms.intersection(holder):
            value = holder[term]
            if isinstance(value, dict):
                # _objects continues with the new value, so maps within maps are found.
                holder[term] = [
                    node if type_ in reachable.none_names else _typed(type_, node)
                    for type_, nodes in value.items()
                    for node in (nodes if isinstance(nodes, list) else [nodes])
                ]


def _check_graphs(
    document: jsonld_contexts.Json, reachable: jsonld_contexts.ReachableContexts
) -> None:
    """Refuse a list or set where a graph is expected.

    The parser would abort the whole process, so there would be no exception to catch.
    """
    for holder in objects_of(document):
        for term in reachable.graph_terms.keys() & holder.keys():
            kinds = reachable.graph_terms[term]
            is_map = "@index" in kinds or "@id" in kinds
            _check_graph(holder[term], reachable, is_map=is_map)


def _check_graph(
    value: jsonld_contexts.Json, reachable: jsonld_contexts.ReachableContexts, *, is_map: bool
) -> None:
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


def _typed(type_: str, node: jsonld_contexts.Json) -> jsonld_contexts.Json:
    if isinstance(node, str):
        node = {"@id": node}
    if not isinstance(node, dict):
        raise MalformedRdf(JSON_LD, "a type map can contain nodes only")
    own = node.get("@type", [])
    types: list[jsonld_contexts.Json] = [type_, *(own if isinstance(own, list) else [own])]
    return {**node, "@type": types}


def objects_of(
    document: jsonld_contexts.Json, *, skipped: AbstractSet[str] = NOT_NODES
) -> Iterator[dict[str, jsonld_contexts.Json]]:
    """The objects in a document, except those under the ``skipped`` keys."""
    pending = [document]
    while pending:
        current = pending.pop()
        if isinstance(current, list):
            pending.extend(current)
        elif isinstance(current, dict):
            yield current
            pending.extend(value for key, value in current.items() if key not in skipped)
