"""JSON, the contexts of JSON-LD, and what a document needs of them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeAlias
from urllib.parse import urljoin

import msgspec

from podstead.core.media_types import JSON_LD
from podstead.rdf.errors import MalformedRdf, RdfTooComplex, UnknownContext
from podstead.rdf.limits import DEFAULT_LIMITS, RdfLimits

# Decoding and encoding JSON, as strictly as JSON-LD requires.
#
# The JSON-LD parser receives only JSON that was encoded here, from values that were checked.
# Repeated keys, escapes and unusual numbers therefore cannot mean different things to us and to the
# parser.

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_POSITION = re.compile(r" \(byte (\d+)\)\Z")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def decode_json(content: bytes, *, max_depth: int) -> Json:
    """Decode one JSON text; of repeated keys, the last applies.

    Raises MalformedRdf with the line, and RdfTooComplex beyond ``max_depth`` nested objects and
    arrays.
    """
    try:
        value: Json = _decoder.decode(content)
    except RecursionError as error:
        raise _too_deep(max_depth) from error
    except UnicodeDecodeError as error:
        raise MalformedRdf(JSON_LD, "it is not UTF-8", line=_undecodable_line(content)) from error
    except msgspec.DecodeError as error:
        raise _malformed(content, str(error)) from error
    # Each level needs a bracket of its own, so nearly all documents need no search.
    if content.count(b"{") + content.count(b"[") > max_depth:
        check_depth(value, max_depth=max_depth)
    return value


def encode_json(value: Json) -> bytes:
    """Encode a JSON value without whitespace."""
    return _encoder.encode(value)


def check_depth(value: Json, *, max_depth: int) -> None:
    """Raises RdfTooComplex if objects and arrays nest deeper than ``max_depth``."""
    level = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level:
        depth += 1
        if depth > max_depth:
            raise _too_deep(max_depth)
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) is dict or type(child) is list
        ]


def _undecodable_line(content: bytes) -> int | None:
    """The first line that is not UTF-8; the decoder's own offset is relative to a string."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return None


def _malformed(content: bytes, message: str) -> MalformedRdf:
    position = _POSITION.search(message)
    reason = _POSITION.sub("", message)
    if position is None:
        return MalformedRdf(JSON_LD, reason)
    before = content[: int(position.group(1))]
    in_line = before[before.rfind(b"\n") + 1 :].decode(errors="replace")
    line = before.count(b"\n") + 1
    return MalformedRdf(JSON_LD, reason, line=line, column=len(in_line) + 1)


def _too_deep(max_depth: int) -> RdfTooComplex:
    return RdfTooComplex(JSON_LD, f"more than {max_depth} nested objects and arrays")


# Available JSON-LD contexts.
#
# Nothing is fetched here. Contexts are provided by a ``ContextSource``: the bundled ones,
# and those that the caller has fetched before. A document that refers to any other context is
# refused with UnknownContext, which contains its URL.


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """An available context document: the value of its ``@context``, with absolute references."""

    url: str
    value: Json


class ContextSource(Protocol):
    """The available contexts by absolute URL; any mapping implements it."""

    def get(self, url: str, /) -> Context | None:
        """The context with this URL; ``None`` if it is not available."""


NO_CONTEXTS: ContextSource = MappingProxyType({})


def read_context(content: bytes, *, url: str, limits: RdfLimits = DEFAULT_LIMITS) -> Context:
    """Parse the context document at ``url``.

    As in any remote context, an ``@base`` has no effect (JSON-LD 1.1 API, 4.1.2 step 5.7). Raises
    MalformedRdf if it is not a JSON object with a top-level ``@context``.
    """
    document = decode_json(content, max_depth=limits.max_depth)
    if not isinstance(document, dict) or "@context" not in document:
        raise MalformedRdf(JSON_LD, f"<{url}> is not a context document")
    return Context(url, absolute_references(document["@context"], base_iri=url, remote=True))


def absolute_references(value: Json, *, base_iri: str, remote: bool = False) -> Json:
    """Resolve every reference to another context in a context against ``base_iri``.

    ``remote`` contexts also lose their ``@base``. Other errors are left for the parser to report.
    Raises MalformedRdf for a reference that cannot be resolved.
    """
    if isinstance(value, str):
        return _resolved(value, base_iri)
    if isinstance(value, list):
        return [absolute_references(part, base_iri=base_iri, remote=remote) for part in value]
    if not isinstance(value, dict):
        return value
    absolute: dict[str, Json] = {}
    for key, definition in value.items():
        if key == "@base" and remote:
            continue
        if key == "@import" and isinstance(definition, str):
            absolute[key] = _resolved(definition, base_iri)
        elif isinstance(definition, dict) and "@context" in definition:
            scoped = absolute_references(definition["@context"], base_iri=base_iri, remote=remote)
            absolute[key] = {**definition, "@context": scoped}
        else:
            absolute[key] = definition
    return absolute


def _resolved(reference: str, base_iri: str) -> str:
    try:
        return urljoin(base_iri, reference)
    except ValueError as error:
        raise MalformedRdf(JSON_LD, "a reference to a context is not an IRI") from error


# Replacing references to contexts with the parts of these contexts that a document needs.
#
# Implements the references of JSON-LD 1.1 API, section 4.1 (context processing): a context is
# referred to by URL in a node, in an array, as the scoped context of a term, or by ``@import``, and
# can itself refer to others. Each reference is replaced with the context.
#
# The parser processes every definition that it receives, so only those that the document can reach
# are inlined: a definition is kept if its term, or the prefix of a compact name, occurs anywhere in
# the document or in another definition that is kept. The meaning of the document does not change.

# No prefix is longer. Without a limit, every long text would be searched for a colon.
_MAX_PREFIX_LENGTH = 256


def names_in(value: Json) -> Iterator[str]:
    """Every name in a JSON value that a context could define.

    A superset: it includes texts, because which keys have texts as values depends on the contexts.
    """
    # An explicit stack, here and below, because the client controls the nesting depth.
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


def parts_of(contexts: Iterable[Json]) -> Iterator[dict[str, Json] | str]:
    """The objects and the references in contexts and in the scoped contexts in them."""
    pending = list(contexts)
    while pending:
        current = pending.pop()
        if isinstance(current, list):
            pending.extend(current)
        elif isinstance(current, str):  # a string in place of a context is a URL
            yield current
        elif isinstance(current, dict):
            yield current
            pending.extend(
                definition["@context"]
                for definition in current.values()
                if isinstance(definition, dict) and "@context" in definition
            )


def refers(value: Json) -> bool:
    """Whether a context contains a reference to another."""
    return any(isinstance(part, str) or part.get("@import") for part in parts_of([value]))


def _is_type_map(definition: dict[str, Json]) -> bool:
    return "@type" in _containers(definition)


def _containers(definition: dict[str, Json]) -> list[Json]:
    container = definition.get("@container")
    return container if isinstance(container, list) else [container]


class ReachableContexts:
    """The definitions that one document can reach.

    ``scoped_terms`` have a scoped context, ``json_terms`` are of type ``@json``;
    ``type_map_terms`` and ``graph_terms`` have ``@type`` or ``@graph`` among their containers (the
    latter are kept with all their containers). ``none_names`` are the names of ``@none``,
    ``array_names`` those of ``@list`` and ``@set``.
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
        """``references`` contain absolute URLs. ``names`` are those in the document; reachable
        names are added to the set.

        ``None`` means all names, for documents without references. Type maps are removed from
        inlined definitions unless ``keep_type_maps``.
        """
        self._keep_type_maps = keep_type_maps
        self._contexts = contexts
        self._names = names
        self._terms_left = max_terms
        # Each part of a context, with those of its terms that have been reached so far.
        self._parts: list[tuple[dict[str, Json], set[str]]] = []
        self._entered_urls: set[str] = set()
        # The contexts that are being inlined around the current one.
        self._open_urls: set[str] = set()
        self._inlined: dict[str, list[Json]] = {}
        # How often a recursive scoped context was left out.
        self._cuts = 0
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
        # The reader expands type maps by the name of the term. It does not know which context is
        # active where, so a name must be a type map in all of them or in none.
        if self.type_map_terms & self._other_terms:
            raise MalformedRdf(JSON_LD, "a term is a type map in one context but not in another")
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
        if url in self._entered_urls:  # also ends cycles; inlining decides which are errors
            return
        self._entered_urls.add(url)
        context = self._contexts.get(url)
        if context is not None:
            self._enter(context.value)

    def _close(self) -> None:
        """Follow names to definitions and definitions to names until nothing new is found."""
        grown = True
        while grown:
            grown = False
            for part, reached in list(self._parts):  # reaching a scoped context adds parts
                new_terms = [term for term in self._kept(part) if term not in reached]
                for term in new_terms:
                    self._reach(term, part[term])
                reached.update(new_terms)
                grown = grown or bool(new_terms)

    def _kept(self, part: dict[str, Json]) -> list[str]:
        names = self._names
        if names is None:
            return list(part)
        # Keywords such as @vocab or @propagate apply without being mentioned.
        return [term for term in part if term in names or term.startswith("@")]

    def _follow_aliases(self) -> None:
        """Find the aliases of ``@list`` and ``@set``, including aliases of aliases."""
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
        # A scoped context is a separate part, whose definitions are reached individually.
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
        """Replace the references in a context of the document, keeping only reachable definitions.

        Raises UnknownContext, MalformedRdf if a context includes itself, and RdfTooComplex if the
        result would have more than ``max_terms`` definitions.
        """
        if isinstance(value, str):
            return self._inline_url(value)
        if isinstance(value, list):
            parts: list[Json] = []
            for part in value:
                if isinstance(part, str):
                    parts.extend(self._inline_url(part))
                else:
                    # A nested array is an error, which is left for the parser to report.
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
            # What was cut depends on the open contexts, so this result cannot be reused.
            if self._cuts == cuts_before:
                self._inlined[url] = parts
        # Counted for each use, not for each context: ten contexts that each refer to the next one
        # twice are written a thousand times.
        self._count(parts)
        return parts

    def _inline_part(self, part: Json) -> Json:
        if not isinstance(part, dict):
            return part
        inlined = {term: self._inline_definition(part[term]) for term in self._kept(part)}
        imported = inlined.pop("@import", None)
        # A context's own definitions override imported ones (4.1.2 step 5.6).
        return inlined if imported is None else {**self._imported(imported), **inlined}

    def _inline_definition(self, definition: Json) -> Json:
        if not isinstance(definition, dict):
            return definition
        if _is_type_map(definition) and not self._keep_type_maps:
            # The reader expands type maps, so the parser never receives one.
            container = definition["@container"]
            kept: list[Json] = container if isinstance(container, list) else []
            definition = {**definition, "@container": [kind for kind in kept if kind != "@type"]}
            if not definition["@container"]:
                del definition["@container"]
        if "@context" in definition:
            definition = {**definition, "@context": self._inline_scoped(definition["@context"])}
        return definition

    def _inline_scoped(self, value: Json) -> Json:
        # Follows contexts that consist only of the URL of another; ``seen`` ends cycles.
        named = value
        seen = set[str]()
        while isinstance(named, str) and named not in self._open_urls and named not in seen:
            seen.add(named)
            context = self._contexts.get(named)
            named = None if context is None else context.value
        if isinstance(named, str) and named in self._open_urls:
            # A scoped context may refer to the context that contains it (JSON-LD 1.1 API, 4.1.2
            # step 5.2.5), directly or indirectly. That context is already active wherever the term
            # is used, so there is nothing to add.
            self._cuts += 1
            return {}
        return self.inline(value)

    def _imported(self, reference: Json) -> dict[str, Json]:
        """The definitions that ``@import`` adds to a part (JSON-LD 1.1 API, 4.1.2 step 5.6)."""
        parts = self._inline_url(reference) if isinstance(reference, str) else []
        if len(parts) != 1 or not isinstance(parts[0], dict):
            raise MalformedRdf(JSON_LD, "@import must name a context of one object")
        return parts[0]

    def _count(self, parts: list[Json]) -> None:
        self._terms_left -= sum(len(part) for part in parts if isinstance(part, dict)) + 1
        if self._terms_left < 0:
            raise RdfTooComplex(JSON_LD, "its contexts define too many terms")
