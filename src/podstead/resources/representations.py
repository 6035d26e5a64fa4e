"""In which form is a resource answered, and what are a document's bytes? (R-1 to R-5, R-8)

Documents are answered as stored when that type is asked for, byte for byte, and converted
otherwise. What was made is kept by version, so that a state is rendered once. Containers have
``listings``.
"""

from __future__ import annotations

from podstead.core.conneg import choose, excludes
from podstead.core.errors import NotAcceptable
from podstead.core.identifiers import ResourcePath, description_of
from podstead.core.media_types import RDF_TYPES, essence
from podstead.rdf.codecs import serialize
from podstead.rdf.graph import EMPTY_GRAPH
from podstead.rdf.listing import LISTING_TYPES
from podstead.resources.documents import Documents
from podstead.resources.entity_tags import state_version
from podstead.resources.outcome import Representation
from podstead.resources.rendering_cache import RenderingCache, RenderingKey
from podstead.storage.records import Metadata


class Representations:
    """Chooses representations, and produces those of documents."""

    def __init__(self, *, documents: Documents, renderings: RenderingCache) -> None:
        self._documents = documents
        self._renderings = renderings

    def choose(self, metadata: Metadata, accept: str | None, *, as_listing: bool) -> str:
        """The media type to answer with; ``as_listing`` for a container itself.

        Raises NotAcceptable. A document that is not RDF is given to whoever did not explicitly
        exclude its type (R-5).
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
        """The description of a resource that nobody described yet (C-30). Raises NotAcceptable."""
        media_type = _chosen(accept, RDF_TYPES)
        content = serialize(EMPTY_GRAPH, media_type)
        return Representation(media_type, content, len(content))

    async def document(self, metadata: Metadata, media_type: str) -> Representation:
        """A document, an ACL or a description in the chosen form. Raises Superseded.

        A container's description is read at another URL than it is stored at, where relative IRIs
        would mean something else (R-7), so its stored bytes are no representation of it.
        """
        if metadata.kind.is_container or media_type != essence(metadata.content_type):
            return await self._converted(metadata, media_type)
        key = _key(metadata.path, metadata, media_type)
        kept = self._renderings.get(key)
        if kept is None:
            body = await self._documents.open(metadata)
            if body.content is None:
                return Representation(metadata.content_type, body, body.size_bytes, verbatim=True)
            kept = body.content
            self._renderings.put(key, kept)
        return Representation(metadata.content_type, kept, len(kept), verbatim=True)

    async def _converted(self, metadata: Metadata, media_type: str) -> Representation:
        # What is stored at a container's path is its description, which its listing only includes.
        path = description_of(metadata.path) if metadata.kind.is_container else metadata.path
        key = _key(path, metadata, media_type)
        kept = self._renderings.get(key)
        if kept is None:
            kept = await self._documents.convert(metadata, media_type, at=path)
            self._renderings.put(key, kept)
        return Representation(media_type, kept, len(kept))


def _chosen(accept: str | None, offered: tuple[str, ...]) -> str:
    chosen = choose(accept, offered)
    if chosen is None:
        raise NotAcceptable(f"This resource is available as {', '.join(offered)}")
    return chosen


def _key(path: ResourcePath, metadata: Metadata, media_type: str) -> RenderingKey:
    return path, state_version(metadata), media_type
