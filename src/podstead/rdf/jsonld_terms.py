"""The terms and the style of a JSON-LD document, which are preserved when it changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from podstead.core.media_types import JSON_LD
from podstead.rdf import jsonld_contexts
from podstead.rdf.errors import MalformedRdf, NotExpressible, RdfTooComplex
from podstead.rdf.graph import Iri, Subject
from podstead.rdf.jsonld_reader import check_definitions, objects_of
from podstead.rdf.limits import RdfLimits
from podstead.rdf.turtle_writer import RelativeReferences

# The terms of a JSON-LD context, and the abbreviations that they allow.
#
# A context maps names to IRIs by rules with many special cases, all of which the parser implements.
# The parser is therefore used as an oracle: it parses a small document in which every name of the
# context is the type of a node, and the result shows the IRI of each name. The rest (coercions and
# containers) is taken from the definitions. A mistake here can affect the form of a document but
# not its meaning, because the output is parsed again and compared (``jsonld_rewriter``).

Meanings = Callable[[list[jsonld_contexts.Json], Sequence[str]], Mapping[str, str]]
"""Returns the IRI of each name, used as a type under a context; names without an IRI are omitted.

The name "" denotes the active base IRI. Raises MalformedRdf.
"""

_CONTEXT = frozenset({"@context"})
KEYWORDS = ("@id", "@type", "@value", "@language", "@direction", "@list", "@graph", "@none")

# These decide the IRI of a term; any others could only make the parser reject the document.
_MEANING_KEYS = frozenset({"@id", "@reverse", "@prefix"})
_MEANING_KEYWORDS = frozenset({"@base", "@vocab", "@version"})
_MAX_DEFINITIONS = 20_000
# A hostile document may define thousands of terms for one property, or use IRIs that consist of
# delimiters.
_MAX_TERMS_OF_A_PROPERTY = 16
_MAX_PREFIXES_TRIED = 16

_DELIMITER = re.compile(r"[:/?#\[\]@]")
_PLAIN = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.\-/]*[A-Za-z0-9_\-])?\Z")
# The IRI of a name that no context defines reveals the vocabulary mapping.
_UNDEFINED = "podstead-undefined-term"


@dataclass(frozen=True, slots=True)
class TermDefinition:
    """A term for a property.

    ``coercion`` is ``@id``, ``@vocab``, ``@json``, the IRI of a datatype, or ``None``. ``language``
    and ``direction`` are those of a plain string under the term. ``scoped`` is the scoped context
    as an array, or ``None``.
    """

    name: str
    coercion: str | None = None
    language: str | None = None
    direction: str | None = None
    container: frozenset[str] = frozenset()
    scoped: list[jsonld_contexts.Json] | None = field(default=None, compare=False)


class DefinitionBudget:
    """Bounds the definitions processed for one document, including those of scoped contexts."""

    def __init__(self) -> None:
        self._left = _MAX_DEFINITIONS

    def spend(self, definitions: int) -> None:
        """Raises RdfTooComplex."""
        self._left -= definitions
        if self._left < 0:
            raise RdfTooComplex(JSON_LD, "its contexts define too many terms to be used")


class TermTable:
    """The terms that are active at one place in a document."""

    def __init__(
        self,
        parts: Sequence[jsonld_contexts.Json],
        meanings: Meanings,
        budget: DefinitionBudget | None = None,
    ) -> None:
        """``parts`` are contexts without references. Raises MalformedRdf and RdfTooComplex."""
        self._parts = list(parts)
        self._meanings = meanings
        # Shared with derived tables, so that the limit includes all scoped contexts.
        self._budget = budget or DefinitionBudget()
        self._derived: dict[int, TermTable] = {}
        self._short: dict[str, str] = {}
        definitions = _in_force(self._parts)
        self._budget.spend(sum(len(part) for part in self._parts if isinstance(part, dict)))
        defaults = [part for part in _since_reset(self._parts) if isinstance(part, dict)]
        # Language tags are compared in lower case, as the RDF library returns them.
        language = _text(_last(defaults, "@language"))
        self._language = None if language is None else language.lower()
        self._direction = _text(_last(defaults, "@direction"))
        self.defined = frozenset(definitions)
        aliases = {term: _keyword(definition) for term, definition in definitions.items()}
        self._keywords = {
            keyword: min(
                (term for term, meant in aliases.items() if meant == keyword),
                key=_shortness,
                default=keyword,
            )
            for keyword in KEYWORDS
        }
        terms = {
            term: definitions[term]
            for term, meant in aliases.items()
            if meant is None and not term.startswith("@")
        }
        iris = self._ask(terms)
        self.types_in_array = _types_in_array(definitions, self._keywords["@type"])
        self.base_iri = iris.get("")
        self._references = RelativeReferences(_usable_base(self.base_iri))
        # Without a vocabulary, the parser resolves an undefined type against the base IRI, which
        # would then be mistaken for a vocabulary (JSON-LD 1.1 API, 5.2.2).
        has_vocabulary = _text(_last(defaults, "@vocab")) not in (None, "")
        undefined = iris.get(_UNDEFINED, "") if has_vocabulary else ""
        self._vocabulary = undefined.removesuffix(_UNDEFINED)
        self._properties: dict[str, list[TermDefinition]] = {}
        self._reverse: dict[str, TermDefinition] = {}
        self._types: dict[str, str] = {}
        self._prefixes: dict[str, str] = {}
        self._scopes: dict[str, list[jsonld_contexts.Json]] = {}
        for name, definition in terms.items():
            if name in iris:
                self._define(name, definition, iris)
        for iri, named in self._properties.items():
            shortest = sorted(named, key=_term_shortness)
            self._properties[iri] = shortest[:_MAX_TERMS_OF_A_PROPERTY]

    def _ask(self, terms: Mapping[str, jsonld_contexts.Json]) -> Mapping[str, str]:
        asked = ["", _UNDEFINED, *terms]
        # The datatype of a coercion can be a term or a compact IRI, too.
        for definition in terms.values():
            coercion = definition.get("@type") if isinstance(definition, dict) else None
            if isinstance(coercion, str) and not coercion.startswith("@"):
                asked.append(coercion)
        return self._meanings([_meaning_only(part) for part in self._parts], asked)

    def _define(self, name: str, definition: jsonld_contexts.Json, iris: Mapping[str, str]) -> None:
        iri = iris[name]
        details = definition if isinstance(definition, dict) else {}
        # An expanded definition is a prefix if it is declared as one, a simple definition if its
        # IRI ends in a delimiter (JSON-LD 1.1 API, 4.2.2).
        is_prefix = details.get("@prefix") is True if details else _ends_in_delimiter(iri)
        if is_prefix and ":" not in name and "/" not in name:
            self._prefixes[iri] = min(name, self._prefixes.get(iri, name), key=_shortness)
        if "@reverse" in details:
            self._define_reverse(name, details, iri)
            return
        self._types[iri] = min(name, self._types.get(iri, name), key=_shortness)
        # This table keeps the list alive, because _extended uses its identity as a key.
        scoped: list[jsonld_contexts.Json] | None = None
        if "@context" in details:
            context = details["@context"]
            scoped = [*context] if isinstance(context, list) else [context]
            self._scopes[name] = scoped
        coercion = _text(details.get("@type"))
        if coercion == "@none":
            coercion = None
        elif coercion is not None and not coercion.startswith("@"):
            coercion = iris.get(coercion)
            if coercion is None:  # not an IRI, so the term cannot be used
                return
        # An explicit null removes the default language or direction.
        language = _text(details["@language"]) if "@language" in details else self._language
        direction = _text(details["@direction"]) if "@direction" in details else self._direction
        term = TermDefinition(
            name,
            coercion=coercion,
            language=None if language is None else language.lower(),
            direction=direction,
            container=_container(details),
            scoped=scoped,
        )
        self._properties.setdefault(iri, []).append(term)

    def _define_reverse(
        self, name: str, details: Mapping[str, jsonld_contexts.Json], iri: str
    ) -> None:
        coercion = details.get("@type")
        container = _container(details)
        # No other containers are allowed here (JSON-LD 1.1 API, 4.2.2 step 13).
        if container <= {"@set", "@index"} and "@context" not in details:
            is_id = coercion == "@id"
            term = TermDefinition(name, coercion="@id" if is_id else None, container=container)
            self._reverse[iri] = min(term, self._reverse.get(iri, term), key=_term_shortness)

    def keyword(self, keyword: str) -> str:
        """The keyword, or its shortest alias."""
        return self._keywords.get(keyword, keyword)

    def terms_of(self, iri: str) -> Sequence[TermDefinition]:
        """The terms for a property."""
        return self._properties.get(iri, ())

    def reverse_term_of(self, iri: str) -> TermDefinition | None:
        """The term for a property in reverse, if the property has no term forward."""
        return None if iri in self._properties else self._reverse.get(iri)

    def nameless(self, iri: str) -> TermDefinition:
        """A term for a property that no term of the context fits: its IRI.

        Raises NotExpressible if the IRI itself is a term for other values.
        """
        name = self._compacted(iri)
        # A context can define a full IRI as a term, whose coercion then applies.
        for term in self.terms_of(iri):
            if term.name == name:
                if not term.container <= {"@set"}:
                    raise NotExpressible(JSON_LD, "its context defines an IRI for other values")
                return term
        return TermDefinition(name, language=self._language, direction=self._direction)

    def type_name(self, iri: str) -> str:
        """The shortest name of a type or datatype."""
        name = self._short.get(iri)
        if name is None:
            name = self._short[iri] = self._types.get(iri) or self._compacted(iri)
        return name

    def _compacted(self, iri: str) -> str:
        """The IRI relative to the vocabulary or with a prefix, unless that is a term; else in
        full."""
        vocabulary = self._vocabulary
        if vocabulary and iri.startswith(vocabulary):
            rest = iri[len(vocabulary) :]
            if _PLAIN.match(rest) and rest not in self.defined:
                return rest
        return self.prefixed(iri) or iri

    def prefixed(self, iri: str) -> str | None:
        """The IRI with the longest matching prefix."""
        ends = [found.end() for found in _DELIMITER.finditer(iri)]
        for end in reversed(ends[-_MAX_PREFIXES_TRIED:]):
            prefix = self._prefixes.get(iri[:end])
            if prefix is not None:
                name = f"{prefix}:{iri[end:]}"
                # A prefix before "//" is not expanded: that is an absolute IRI (5.2.2 step 6.2).
                if not iri.startswith("//", end) and name not in self.defined:
                    return name
        return None

    def reference(self, iri: str) -> str:
        """The IRI relative to the active base, if it is in the same container."""
        return self._references.reference(iri)

    def under(self, term: TermDefinition) -> TermTable:
        """The terms that are active in the values of a property."""
        return self if term.scoped is None else self._extended(term.scoped)

    def with_types(self, names: Sequence[str]) -> tuple[TermTable, TermTable]:
        """The terms that are active in a node with these types, and in the nodes nested in it."""
        inside, propagated = self, self
        # In the order in which a parser applies them (JSON-LD 1.1 API, 5.1.2 step 11). The scoped
        # contexts of types do not propagate unless they say so.
        for name in sorted(names):
            scoped = self._scopes.get(name)
            if scoped is not None:
                inside = inside._extended(scoped)
                if any(isinstance(part, dict) and part.get("@propagate") for part in scoped):
                    propagated = inside
        return inside, propagated

    def _extended(self, scoped: list[jsonld_contexts.Json]) -> TermTable:
        # Safe as a key: this table keeps the list alive, so no other list can get its address.
        key = id(scoped)
        table = self._derived.get(key)
        if table is None:
            table = TermTable([*self._parts, *scoped], self._meanings, self._budget)
            self._derived[key] = table
        return table


def _since_reset(parts: Sequence[jsonld_contexts.Json]) -> list[jsonld_contexts.Json]:
    """The active parts: ``null`` clears all before it (JSON-LD 1.1 API, 4.1.2 step 5.1)."""
    resets = [place for place, part in enumerate(parts) if part is None]
    return list(parts[resets[-1] + 1 :]) if resets else list(parts)


def _in_force(parts: Sequence[jsonld_contexts.Json]) -> dict[str, jsonld_contexts.Json]:
    definitions: dict[str, jsonld_contexts.Json] = {}
    for part in _since_reset(parts):
        if isinstance(part, dict):
            definitions.update(
                (term, definition)
                for term, definition in part.items()
                if not term.startswith("@") or term == "@type"
            )
    return definitions


def _last(parts: Sequence[dict[str, jsonld_contexts.Json]], keyword: str) -> jsonld_contexts.Json:
    return next((part[keyword] for part in reversed(parts) if keyword in part), None)


def _meaning_only(part: jsonld_contexts.Json) -> jsonld_contexts.Json:
    if not isinstance(part, dict):
        return part
    return {
        term: (
            {key: value for key, value in definition.items() if key in _MEANING_KEYS}
            if isinstance(definition, dict)
            else definition
        )
        for term, definition in part.items()
        if not term.startswith("@") or term in _MEANING_KEYWORDS
    }


def _keyword(definition: jsonld_contexts.Json) -> str | None:
    """The keyword that a term is an alias of, if any."""
    meant = definition.get("@id") if isinstance(definition, dict) else definition
    return meant if isinstance(meant, str) and meant.startswith("@") else None


def _types_in_array(definitions: Mapping[str, jsonld_contexts.Json], type_keyword: str) -> bool:
    definition = definitions.get(type_keyword)
    return isinstance(definition, dict) and "@set" in _container(definition)


def _container(definition: Mapping[str, jsonld_contexts.Json]) -> frozenset[str]:
    container = definition.get("@container")
    kinds = container if isinstance(container, list) else [container]
    return frozenset(kind for kind in kinds if isinstance(kind, str))


def _usable_base(base_iri: str | None) -> str | None:
    """The base IRI, if it is simple enough for relative references."""
    if base_iri is None or "?" in base_iri or "#" in base_iri:
        return None
    return base_iri if "/" in base_iri.partition("://")[2] else None


def _ends_in_delimiter(iri: str) -> bool:
    return iri[-1:] in ":/?#[]@" if iri else False


def _text(value: jsonld_contexts.Json) -> str | None:
    return value if isinstance(value, str) else None


def _term_shortness(term: TermDefinition) -> tuple[int, str]:
    return _shortness(term.name)


def _shortness(name: str) -> tuple[int, str]:
    return len(name), name


# The style of a JSON-LD document, which is preserved when the document changes.
#
# The context is kept as it was sent. The style also includes what the graph does not contain:
# whether IRIs were absolute, relative or prefixed, which nodes were nested, and which keys had
# arrays. Applications that process JSON-LD as plain JSON depend on it.


@dataclass(frozen=True, slots=True)
class Original:
    """A JSON-LD document as it was sent, and the contexts with which it was parsed."""

    content: bytes
    contexts: jsonld_contexts.ContextSource
    limits: RdfLimits


class Style:
    """The context and the style of a document."""

    def __init__(self, original: Original, *, base_iri: str, meanings: Meanings) -> None:
        """``base_iri`` is the URL of the document to be written.

        Raises MalformedRdf if the document has no top-level context, UnknownContext, and
        RdfTooComplex if its context is too large.
        """
        document = jsonld_contexts.decode_json(
            original.content, max_depth=original.limits.max_depth
        )
        if isinstance(document, list) and len(document) == 1:
            document = document[0]
        if not isinstance(document, dict) or not document.get("@context"):
            raise MalformedRdf(JSON_LD, "it has no context of its own")
        self.context = document["@context"]
        self.table = TermTable(_parts(self.context, original, base_iri), meanings)
        graph_key = self.table.keyword("@graph")
        self.has_graph_at_top = graph_key in document
        self.array_keys = _array_keys(document)
        top = document[graph_key] if self.has_graph_at_top else document
        id_keys = {self.table.keyword("@id"), "@id"}
        root_names = set(_ids(top if isinstance(top, list) else [top], id_keys))
        self._nested_names = set(_ids(objects_of(document, skipped=_CONTEXT), id_keys)) - root_names
        self._texts = set(jsonld_contexts.names_in(document))
        container = base_iri[: base_iri.rfind("/") + 1]
        self._is_absolute = container.encode() in original.content

    def id_of(self, iri: str, table: TermTable) -> str:
        """The IRI of a node in the form that the document uses for it, or for similar IRIs."""
        relative = table.reference(iri)
        for form in (iri, relative, table.prefixed(iri)):
            if form in self._texts:
                return form
        return iri if self._is_absolute else relative

    def nested(self, subjects: Iterable[Subject]) -> Collection[Iri]:
        """The nodes that were nested in others."""
        if not self._nested_names:
            return ()
        table = self.table
        return {
            iri
            for iri in subjects
            if isinstance(iri, Iri)
            and not self._nested_names.isdisjoint(
                (iri.value, table.reference(iri.value), table.prefixed(iri.value))
            )
        }


def _parts(
    context: jsonld_contexts.Json, original: Original, base_iri: str
) -> list[jsonld_contexts.Json]:
    """The parts of a context with all its terms, without references."""
    absolute = jsonld_contexts.absolute_references(context, base_iri=base_iri)
    reachable = jsonld_contexts.ReachableContexts(
        [absolute],
        names=None,
        contexts=original.contexts,
        max_terms=original.limits.max_context_terms,
        keep_type_maps=True,
    )
    inlined = reachable.inline(absolute)
    check_definitions(inlined, max_depth=original.limits.max_depth)
    return inlined if isinstance(inlined, list) else [inlined]


def _ids(objects: Iterable[jsonld_contexts.Json], id_keys: Collection[str]) -> Iterator[str]:
    for current in objects:
        if isinstance(current, dict):
            for key in id_keys:
                value = current.get(key)
                if isinstance(value, str):
                    yield value


def _array_keys(document: jsonld_contexts.Json) -> set[str]:
    """The keys whose values were always arrays, even if there was only one value."""
    in_array, alone = set[str](), set[str]()
    for current in objects_of(document, skipped=_CONTEXT):
        for key, value in current.items():
            (in_array if isinstance(value, list) else alone).add(key)
    return in_array - alone
