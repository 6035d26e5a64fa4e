"""Negotiates the media type of a representation, and produces its bytes (R-1 to R-5, R-8).

A document is sent byte for byte as stored if its own media type was negotiated, and converted
otherwise. Conversions are cached by version. For containers, see ``listings.py``.
"""

from __future__ import annotations

import asyncio
from functools import partial

from podstead.core.errors import NotAcceptable
from podstead.core.identifiers import ResourcePath, description_of
from podstead.core.media_types import RDF_TYPES, choose, essence, excludes
from podstead.core.request_context import requester, requester_agent
from podstead.rdf.codecs import serialize
from podstead.rdf.graph import EMPTY_GRAPH
from podstead.rdf.listing import LISTING_TYPES
from podstead.resources.documents import Documents
from podstead.resources.entity_tags import state_version
from podstead.resources.outcome import Representation
from podstead.resources.rendering_cache import RenderingCache, RenderingKey
from podstead.storage.records import Metadata

_Turn = tuple[RenderingKey, str, str | None]
"""A conversion and its requester."""


class Representations:
    """Negotiates media types, and produces the representations of documents."""

    def __init__(self, *, documents: Documents, renderings: RenderingCache) -> None:
        self._documents = documents
        self._renderings = renderings
        self._converting: dict[_Turn, asyncio.Task[bytes]] = {}

    def choose(self, metadata: Metadata, accept: str | None, *, as_listing: bool) -> str:
        """The media type of the representation; ``as_listing`` for a container itself.

        Raises NotAcceptable. A document that is not RDF is sent unless ``accept`` explicitly
        excludes its type (R-5).
        """
        if as_listing:
            offered: tuple[str, ...] = LISTING_TYPES
        else:
            stored = essence(metadata.content_type)
            if stored not in RDF_TYPES:
                if excludes(accept, stored):
                    raise NotAcceptable(f"This resource is available only as {stored}")
                return stored
            offered = (stored, *(kind for kind in RDF_TYPES if kind != stored))
        return _chosen(accept, offered)

    def empty_description(self, accept: str | None) -> Representation:
        """The description of a resource that has none yet (C-30). Raises NotAcceptable."""
        media_type = _chosen(accept, RDF_TYPES)
        content = serialize(EMPTY_GRAPH, media_type)
        return Representation(media_type, content, len(content))

    async def document(
        self, metadata: Metadata, media_type: str, *, head: bool = False
    ) -> Representation:
        """A document, an ACL or a description in the given media type; for ``head`` without its
        content, unless that is known already. Raises Superseded.

        The description of a container is always converted: its URL is not that of the container, so
        the relative IRIs in the stored bytes would resolve differently (R-7).
        """
        if metadata.kind.is_container or media_type != essence(metadata.content_type):
            return await self._converted(metadata, media_type, head=head)
        key = _key(metadata.path, metadata, media_type)
        cached = self._renderings.get(key)
        if cached is None:
            body = await self._documents.open(metadata)
            if body.content is None:
                return Representation(metadata.content_type, body, body.size_bytes, verbatim=True)
            cached = body.content
            self._renderings.put(key, cached)
        return Representation(metadata.content_type, cached, len(cached), verbatim=True)

    async def _converted(
        self, metadata: Metadata, media_type: str, *, head: bool
    ) -> Representation:
        # The body stored at a container's path is its description.
        path = description_of(metadata.path) if metadata.kind.is_container else metadata.path
        key = _key(path, metadata, media_type)
        cached = self._renderings.get(key)
        if cached is None:
            if head:
                return Representation(media_type, None, None)
            cached = await self._together(key, metadata, media_type, path)
        return Representation(media_type, cached, len(cached))

    async def _together(
        self, key: RenderingKey, metadata: Metadata, media_type: str, path: ResourcePath
    ) -> bytes:
        """Convert a document once for all concurrent requests of one requester. The end of one
        request does not end it for the others."""
        turn = key, requester(), requester_agent()
        converting = self._converting.get(turn)
        if converting is None:
            converting = asyncio.create_task(self._convert(key, metadata, media_type, path))
            self._converting[turn] = converting
            converting.add_done_callback(partial(self._converted_once, turn))
        return await asyncio.shield(converting)

    def _converted_once(self, turn: _Turn, converting: asyncio.Task[bytes]) -> None:
        del self._converting[turn]
        if not converting.cancelled():
            converting.exception()  # perhaps no request is left to receive it

    async def _convert(
        self, key: RenderingKey, metadata: Metadata, media_type: str, path: ResourcePath
    ) -> bytes:
        converted = await self._documents.convert(metadata, media_type, at=path)
        self._renderings.put(key, converted)
        return converted


def _chosen(accept: str | None, offered: tuple[str, ...]) -> str:
    chosen = choose(accept, offered)
    if chosen is None:
        raise NotAcceptable(f"This resource is available as {', '.join(offered)}")
    return chosen


def _key(path: ResourcePath, metadata: Metadata, media_type: str) -> RenderingKey:
    return path, state_version(metadata), media_type
