"""What do the contexts of a JSON-LD document cost the parser?

The parser copies all active terms whenever a context changes them, and follows references between
definitions by recursion. A document of a hundred kilobytes could keep it busy for minutes with the
former, and overflow the stack of the process with the latter. Both costs are computed here, on the
document as the parser would receive it.
"""

from __future__ import annotations

from podstead.core.media_types import JSON_LD
from podstead.rdf.errors import RdfTooComplex
from podstead.rdf.json_text import Json
from podstead.rdf.jsonld_inlining import names_in

# Keys whose values are not nodes: a context, or a literal (which can be any JSON).
NOT_NODES = frozenset({"@context", "@value"})


def check_definitions(context: Json, *, max_depth: int) -> None:
    """Refuse a context with a chain of more than ``max_depth`` definitions.

    A definition depends on those of the terms and prefixes that it uses, and on those of its scoped
    context. On a stack of 1 MiB, the parser handles 478; contexts in use have 5. Raises
    RdfTooComplex.
    """
    # A chain cannot be longer than the number of definitions, so nearly all contexts need no
    # search.
    if _count_definitions(context) > max_depth and _definition_depth(context) > max_depth:
        raise RdfTooComplex(JSON_LD, "the chain of definitions in its contexts is too long")


def _definition_depth(context: Json) -> int:
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


def _needed_terms(term: str, context: dict[str, Json]) -> set[str]:
    definition = context[term]
    if isinstance(definition, dict):
        definition = {key: value for key, value in definition.items() if key != "@context"}
    return {name for name in names_in([term, definition]) if name in context and name != term}


def _scoped_depth(definition: Json) -> int:
    if isinstance(definition, dict) and "@context" in definition:
        return _definition_depth(definition["@context"])
    return 0


def check_context_work(document: Json, scoped_terms: set[str], *, max_work: int) -> None:
    """Bound the number of terms that the parser copies: all active ones, per change by a context.

    A scoped context changes them wherever its term is a key or a value (a type). Raises
    RdfTooComplex.
    """
    work_left = max_work
    pending: list[tuple[Json, int]] = [(document, 0)]
    while pending:
        current, terms = pending.pop()
        if isinstance(current, list):
            pending.extend((value, terms) for value in current)
            continue
        if not isinstance(current, dict):
            continue
        if "@context" in current:
            terms += _count_definitions(current["@context"])
            work_left -= terms
        if scoped_terms:
            work_left -= terms * _scoped_changes(current, scoped_terms)
        if work_left < 0:
            raise RdfTooComplex(JSON_LD, "its contexts are activated too often")
        pending.extend((value, terms) for key, value in current.items() if key not in NOT_NODES)


def _scoped_changes(node: dict[str, Json], scoped_terms: set[str]) -> int:
    changes = 0
    for key, value in node.items():
        values = value if isinstance(value, list) else [value]
        if key in scoped_terms:
            changes += len(values)
        changes += sum(1 for one in values if isinstance(one, str) and one in scoped_terms)
    return changes


def _count_definitions(context: Json) -> int:
    """The number of definitions in a context, including those of its scoped contexts."""
    count = 0
    pending = [context]
    while pending:
        current = pending.pop()
        if isinstance(current, list):
            pending.extend(current)
        elif isinstance(current, dict):
            count += len(current)
            pending.extend(
                definition["@context"]
                for definition in current.values()
                if isinstance(definition, dict) and "@context" in definition
            )
    return count
