"""Estimates what the contexts of a JSON-LD document cost the parser.

The parser copies all active terms whenever a context changes them, processes a scoped context again
wherever it takes effect, and follows references between definitions by recursion. A document of a
hundred kilobytes could keep it busy for minutes with the former, and overflow the stack of the
process with the latter. The costs are computed here, on the document as the parser would receive
it, and so is the length of names whose definitions build on one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from podstead.core.media_types import JSON_LD
from podstead.rdf.errors import RdfTooComplex, RdfTooLarge
from podstead.rdf.json_text import Json
from podstead.rdf.jsonld_inlining import names_in
from podstead.rdf.limits import DEFINITION_WORK

# Keys whose values are not nodes: a context, or a literal (which can be any JSON).
NOT_NODES = frozenset({"@context", "@value"})

_COPIES_OF_SCOPED: Final = 3
"""How often defining a scoped context copies the terms, besides once for the context itself."""
_STARTS: Final = frozenset({"@vocab", "@base"})
"""What names without a prefix begin with."""


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


def check_context_work(
    document: Json, holders: Iterable[dict[str, Json]], *, max_work: int
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
    pending: list[tuple[Json, int]] = [(document, 0)]
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


def _scoped_work(node: dict[str, Json], terms: int, scoped: Mapping[str, _Cost]) -> tuple[int, int]:
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
        self._known: dict[int, tuple[Json, _Cost]] = {}

    def of(self, context: Json) -> _Cost:
        if not isinstance(context, dict | list):
            return _Cost()
        known = self._known.get(id(context))
        if known is None:
            cost = self._of_all(context) if isinstance(context, list) else self._of_part(context)
            known = self._known[id(context)] = context, cost
        return known[1]

    def _of_all(self, parts: list[Json]) -> _Cost:
        fixed = copies = definitions = 0
        for part in parts:
            cost = self.of(part)
            fixed += cost.at(definitions)
            copies += cost.copies
            definitions += cost.definitions
        return _Cost(fixed, copies, definitions)

    def _of_part(self, context: dict[str, Json]) -> _Cost:
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


def check_expanded_size(contexts: Iterable[Json], *, names: int, max_bytes: int) -> None:
    """Bound the size of a document whose ``names`` are all as long as the longest one that its
    contexts can make: the parser keeps all of them in memory. Raises RdfTooLarge."""
    if longest_name(contexts) * names > max_bytes:
        raise RdfTooLarge(
            "The contexts of this document make its names too long: written in full, they can have "
            f"at most {max_bytes} bytes"
        )


def longest_name(contexts: Iterable[Json]) -> int:
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


def _meanings(contexts: Iterable[Json]) -> Iterator[tuple[str, str]]:
    """The terms and keywords of contexts and of scoped ones, with what they mean."""
    pending = list(contexts)
    while pending:
        current = pending.pop()
        if isinstance(current, list):
            pending.extend(current)
        elif isinstance(current, dict):
            for term, definition in current.items():
                meant = definition.get("@id") if isinstance(definition, dict) else definition
                if isinstance(meant, str):
                    yield term, meant
                if isinstance(definition, dict) and "@context" in definition:
                    pending.append(definition["@context"])


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
