"""How does a document do without references to contexts, and what of them does it use?

JSON-LD 1.1 API, section 4.1 (context processing) seen from the side of references: a context is
named by URL in a node, in an array, as the scoped context of a term, or by ``@import``, and a
context so named may name others. Each reference is replaced by what it refers to.

Of a context only the definitions that the document can reach are written in, because the parser
works through all it is given: a definition is kept if its term, or the prefix of a compact name,
occurs anywhere in the document or in a definition kept. A document's own definitions are therefore
all kept, and what the document means is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podstead.core.media_types import JSON_LD
from podstead.rdf.errors import MalformedRdf, RdfTooComplex, UnknownContext
from podstead.rdf.json_text import Json
from podstead.rdf.jsonld_contexts import ContextSource

# A prefix is looked for in front of the first colon, not behind megabytes of text.
_MAX_PREFIX_LENGTH = 256


def names_in(value: Json) -> Iterator[str]:
    """Every name by which a context could give meaning to something in a JSON value."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            yield current
            colon = current.find(":", 0, _MAX_PREFIX_LENGTH)
            if colon > 0:
                yield current[:colon]
        elif isinstance(current, dict):
            pending.extend(current)
            pending.extend(current.values())
        elif isinstance(current, list):
            pending.extend(current)


def refers(value: Json) -> bool:
    """Whether a context refers to another one anywhere."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            return True
        if isinstance(current, list):
            pending.extend(current)
        elif isinstance(current, dict):
            pending.append(current.get("@import"))
            pending.extend(
                definition["@context"]
                for definition in current.values()
                if isinstance(definition, dict) and "@context" in definition
            )
    return False


def _is_type_map(definition: dict[str, Json]) -> bool:
    return "@type" in _containers(definition)


def _containers(definition: dict[str, Json]) -> list[Json]:
    container = definition.get("@container")
    return container if isinstance(container, list) else [container]


class ContextsInPlay:
    """The definitions that one document can reach.

    ``unknown`` are the URLs of contexts that it needs and that are not at hand, in the order found.
    ``scoped_terms``, ``json_terms``, ``type_map_terms`` and ``graph_terms`` are the terms with a
    scoped context, of type ``@json``, and with ``@type`` or ``@graph`` as container (with it, the
    other kinds of container); ``none_names`` and ``array_names`` are the names of ``@none``, and of
    ``@list`` and ``@set``.
    """

    def __init__(
        self,
        references: Iterable[Json],
        *,
        names: set[str] | None,
        contexts: ContextSource,
        max_terms: int,
        keep_type_maps: bool = False,
    ) -> None:
        """``references`` hold absolute URLs; ``names`` are those in the document, and grow.

        ``None`` means all names: a document that refers to nothing needs no choice. What is
        inlined has no maps by type, unless they are to be kept.
        """
        self._keep_type_maps = keep_type_maps
        self._contexts = contexts
        self._names = names
        self._terms_left = max_terms
        self._parts: list[tuple[dict[str, Json], set[str]]] = []
        self._entered_urls: set[str] = set()
        self._open_urls: set[str] = set()
        self._inlined: dict[str, list[Json]] = {}
        self._cuts = 0
        self.unknown: dict[str, None] = {}
        self.scoped_terms: set[str] = set()
        self.json_terms: set[str] = set()
        self.type_map_terms: set[str] = set()
        self.graph_terms: dict[str, set[str]] = {}
        self.none_names: set[str] = {"@none"}
        self.array_names: set[str] = {"@list", "@set"}
        self._aliases: dict[str, set[str]] = {}
        self._other_terms: set[str] = set()
        for reference in references:
            self._enter(reference)
        self._close()
        if self.type_map_terms & self._other_terms:
            raise MalformedRdf(JSON_LD, "a term is a map by type in one context, not in another")
        if self.graph_terms:
            self._follow_aliases()

    def _enter(self, value: Json) -> None:
        if isinstance(value, str):
            self._enter_url(value)
        elif isinstance(value, list):
            for part in value:
                self._enter(part)
        elif isinstance(value, dict):
            self._parts.append((value, set()))
            imported = value.get("@import")
            if isinstance(imported, str):
                self._enter_url(imported)

    def _enter_url(self, url: str) -> None:
        if url in self._entered_urls:
            return
        self._entered_urls.add(url)
        context = self._contexts.get(url)
        if context is None:
            self.unknown[url] = None
        else:
            self._enter(context.value)

    def _close(self) -> None:
        """Reach definitions from names and names from definitions until nothing new is reached."""
        grown = True
        while grown:
            grown = False
            for part, reached in list(self._parts):
                new_terms = [term for term in self._kept(part) if term not in reached]
                for term in new_terms:
                    self._reach(term, part[term])
                reached.update(new_terms)
                grown = grown or bool(new_terms)

    def _kept(self, part: dict[str, Json]) -> list[str]:
        names = self._names
        if names is None:
            return list(part)
        return [term for term in part if term in names or term.startswith("@")]

    def _follow_aliases(self) -> None:
        """Find the names of ``@list`` and ``@set``, which may be names of names."""
        pending = list(self.array_names)
        while pending:
            for alias in self._aliases.get(pending.pop(), ()):
                if alias not in self.array_names:
                    self.array_names.add(alias)
                    pending.append(alias)

    def _reach(self, term: str, definition: Json) -> None:
        meant = definition.get("@id") if isinstance(definition, dict) else definition
        if isinstance(meant, str):
            self._aliases.setdefault(meant, set()).add(term)
        if not isinstance(definition, dict):
            self._use(term, definition)
            self._other_terms.add(term)
            if definition == "@none":
                self.none_names.add(term)
            return
        self._use(term, {key: value for key, value in definition.items() if key != "@context"})
        if "@context" in definition:
            self.scoped_terms.add(term)
            self._enter(definition["@context"])
        if definition.get("@type") == "@json":
            self.json_terms.add(term)
        kinds = {kind for kind in _containers(definition) if isinstance(kind, str)}
        if "@graph" in kinds:
            self.graph_terms.setdefault(term, set()).update(kinds)
        if _is_type_map(definition):
            self.type_map_terms.add(term)
        else:
            self._other_terms.add(term)

    def _use(self, term: str, definition: Json) -> None:
        if self._names is not None:
            self._names.update(names_in([term, definition]))

    def inline(self, value: Json) -> Json:
        """A context of the document without references, and only with definitions in reach.

        Raises UnknownContext, MalformedRdf when a context includes itself, and RdfTooComplex when
        more than ``max_terms`` definitions would be written.
        """
        if isinstance(value, str):
            return self._inline_url(value)
        if isinstance(value, list):
            parts: list[Json] = []
            for part in value:
                if isinstance(part, str):
                    parts.extend(self._inline_url(part))
                else:
                    # An array in an array is an error, which the parser is to find.
                    parts.append(self._inline_part(part))
            return parts
        return self._inline_part(value)

    def _inline_url(self, url: str) -> list[Json]:
        parts = self._inlined.get(url)
        if parts is None:
            context = self._contexts.get(url)
            if context is None:
                raise UnknownContext(url)
            if url in self._open_urls:
                raise MalformedRdf(JSON_LD, f"the context <{url}> includes itself")
            cuts_before = self._cuts
            self._open_urls.add(url)
            inlined = self.inline(context.value)
            self._open_urls.remove(url)
            parts = inlined if isinstance(inlined, list) else [inlined]
            if self._cuts == cuts_before:
                self._inlined[url] = parts
        self._count(parts)
        return parts

    def _inline_part(self, part: Json) -> Json:
        if not isinstance(part, dict):
            return part
        inlined = {term: self._inline_definition(part[term]) for term in self._kept(part)}
        imported = inlined.pop("@import", None)
        return inlined if imported is None else {**self._imported(imported), **inlined}

    def _inline_definition(self, definition: Json) -> Json:
        if not isinstance(definition, dict):
            return definition
        if _is_type_map(definition) and not self._keep_type_maps:
            # The reader unfolds the maps, so that the parser never sees one.
            container = definition["@container"]
            kept: list[Json] = container if isinstance(container, list) else []
            definition = {**definition, "@container": [kind for kind in kept if kind != "@type"]}
            if not definition["@container"]:
                del definition["@container"]
        if "@context" in definition:
            definition = {**definition, "@context": self._inline_scoped(definition["@context"])}
        return definition

    def _inline_scoped(self, value: Json) -> Json:
        named = value
        seen = set[str]()
        while isinstance(named, str) and named not in self._open_urls and named not in seen:
            seen.add(named)
            context = self._contexts.get(named)
            named = None if context is None else context.value
        if isinstance(named, str) and named in self._open_urls:
            # It may name the context that it stands in (JSON-LD 1.1 API, 4.1.2 step 5.2.5), also by
            # way of another. That one is in force already where the term is: nothing to add.
            self._cuts += 1
            return {}
        return self.inline(value)

    def _imported(self, reference: Json) -> dict[str, Json]:
        """What ``@import`` puts below a part (JSON-LD 1.1 API, 4.1.2 step 5.6)."""
        parts = self._inline_url(reference) if isinstance(reference, str) else []
        if len(parts) != 1 or not isinstance(parts[0], dict):
            raise MalformedRdf(JSON_LD, "@import must name a context of one object")
        return parts[0]

    def _count(self, parts: list[Json]) -> None:
        self._terms_left -= sum(len(part) for part in parts if isinstance(part, dict)) + 1
        if self._terms_left < 0:
            raise RdfTooComplex(JSON_LD, "its contexts define too many terms")
