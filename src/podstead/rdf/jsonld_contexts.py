"""Available JSON-LD contexts.

Nothing is fetched here (R-11). Contexts are provided by a ``ContextSource``: the bundled ones, and
those that the caller has fetched before. A document that refers to any other context is refused
with UnknownContext, which contains its URL.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol
from urllib.parse import urljoin

from podstead.core.media_types import JSON_LD
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.json_text import Json, decode_json
from podstead.rdf.limits import DEFAULT_LIMITS, RdfLimits


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
