"""A port for parsing RDF, for layers that must not fetch JSON-LD contexts themselves."""

from __future__ import annotations

from typing import Protocol

from podstead.rdf.graph import Graph


class RdfParser(Protocol):
    """Parses bytes into a graph; relative IRIs are resolved against ``base_iri``."""

    async def __call__(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        """Raises RequestRefused for content that is not RDF, is too large, or is not understood.
        UnknownContext and OutboundError may be temporary: a JSON-LD context is not available."""
