"""The style of a JSON-LD document, which is preserved when the document changes.

The context is kept as it was sent. The style also includes what the graph does not contain: whether
IRIs were absolute, relative or prefixed, which nodes were nested, and which keys had arrays.
Applications that process JSON-LD as plain JSON depend on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from podstead.core.media_types import JSON_LD
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.json_text import Json, decode_json
from podstead.rdf.jsonld_contexts import ContextSource, absolute_references
from podstead.rdf.jsonld_cost import check_definitions
from podstead.rdf.jsonld_inlining import ReachableContexts, names_in
from podstead.rdf.jsonld_terms import Meanings, TermTable
from podstead.rdf.limits import RdfLimits
from podstead.rdf.terms import Iri, Subject


@dataclass(frozen=True, slots=True)
class Original:
    """A JSON-LD document as it was sent, and the contexts with which it was parsed."""

    content: bytes
    contexts: ContextSource
    limits: RdfLimits


class Style:
    """The context and the style of a document."""

    def __init__(self, original: Original, *, base_iri: str, meanings: Meanings) -> None:
        """``base_iri`` is the URL of the document to be written.

        Raises MalformedRdf if the document has no top-level context, UnknownContext, and
        RdfTooComplex if its context is too large.
        """
        document = decode_json(original.content, max_depth=original.limits.max_depth)
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
        self._nested_names = set(_ids(_objects(document), id_keys)) - root_names
        self._texts = set(names_in(document))
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


def _parts(context: Json, original: Original, base_iri: str) -> list[Json]:
    """The parts of a context with all its terms, without references."""
    absolute = absolute_references(context, base_iri=base_iri)
    reachable = ReachableContexts(
        [absolute],
        names=None,
        contexts=original.contexts,
        max_terms=original.limits.max_context_terms,
        keep_type_maps=True,
    )
    inlined = reachable.inline(absolute)
    check_definitions(inlined, max_depth=original.limits.max_depth)
    return inlined if isinstance(inlined, list) else [inlined]


def _ids(objects: Iterable[Json], id_keys: Collection[str]) -> Iterator[str]:
    for current in objects:
        if isinstance(current, dict):
            for key in id_keys:
                value = current.get(key)
                if isinstance(value, str):
                    yield value


def _array_keys(document: Json) -> set[str]:
    """The keys whose values were always arrays, even if there was only one value."""
    in_array, alone = set[str](), set[str]()
    for current in _objects(document):
        for key, value in current.items():
            (in_array if isinstance(value, list) else alone).add(key)
    return in_array - alone


def _objects(document: Json) -> Iterator[dict[str, Json]]:
    pending = [document]
    while pending:
        current = pending.pop()
        if isinstance(current, list):
            pending.extend(current)
        elif isinstance(current, dict):
            yield current
            pending.extend(value for key, value in current.items() if key != "@context")
