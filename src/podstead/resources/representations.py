"""In which form is a resource answered, and what are its bytes? (R-1 to R-5, R-8, C-23 to C-27)

Documents are answered as stored when that type is asked for, byte for byte, and converted
otherwise. A container's representation is made of its members and its own triples. What was made
is kept by version, so that a state is rendered once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from podstead.core.conneg import choose, excludes
from podstead.core.errors import NotAcceptable
from podstead.core.identifiers import ResourcePath, description_of, segment_name
from podstead.core.media_types import RDF_TYPES, essence
from podstead.rdf.codecs import serialize
from podstead.rdf.graph import EMPTY_GRAPH, Graph
from podstead.rdf.listing import LISTING_TYPES, ListedMember, Listing
from podstead.resources.documents import Documents, run_work
from podstead.resources.entity_tags import last_modified_ms, state_version
from podstead.resources.outcome import Representation
from podstead.resources.renderings import RenderingKey, Renderings
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Kind, Metadata

_PAGE_MEMBERS = 500


class Representations:
    """Chooses and produces representations."""

    def __init__(
        self, *, store: ResourceStore, documents: Documents, renderings: Renderings
    ) -> None:
        self._store = store
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
                    raise NotAcceptable(f"This resource can only be had as {stored}")
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
            self._renderings.keep(key, kept)
        return Representation(metadata.content_type, kept, len(kept), verbatim=True)

    async def _converted(self, metadata: Metadata, media_type: str) -> Representation:
        # What is stored at a container's path is its description, which its listing only includes.
        path = description_of(metadata.path) if metadata.kind.is_container else metadata.path
        key = _key(path, metadata, media_type)
        kept = self._renderings.get(key)
        if kept is None:
            kept = await self._documents.convert(metadata, media_type, at=path)
            self._renderings.keep(key, kept)
        return Representation(media_type, kept, len(kept))

    async def minimal_container(self, container: Metadata, media_type: str) -> Representation:
        """A container as it would be if it were empty (LDP 1.0 section 7.2.2.1), in the chosen
        form. Raises Superseded and NotExpressible."""
        key = _key(container.path, container, f"{media_type}; minimal")
        kept = self._renderings.get(key)
        if kept is None:
            begun = await self._begin_listing(container, media_type)
            kept = begun.head + begun.listing.end()
            self._renderings.keep(key, kept)
        return Representation(media_type, kept, len(kept))

    async def listing(self, container: Metadata, media_type: str) -> Representation:
        """A container in the chosen form. Raises Superseded.

        Kept if it is small enough; a container that is not is sent while it is read.
        """
        key = _key(container.path, container, media_type)
        kept = self._renderings.get(key)
        if kept is not None:
            return Representation(media_type, kept, len(kept))
        pieces: list[bytes] = []
        size_bytes = 0
        rest = self._render(await self._begin_listing(container, media_type), container)
        async for piece in rest:
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > self._renderings.largest_bytes:
                return Representation(media_type, _joined(pieces, rest), None)
        content = b"".join(pieces)
        if await self._is_current(container):
            self._renderings.keep(key, content)
        return Representation(media_type, content, size_bytes)

    async def _begin_listing(self, container: Metadata, media_type: str) -> _BegunListing:
        """A listing with all but its members written, which may be as long as any document."""
        work = partial(
            _begun,
            container_url=self._documents.url_of(container.path),
            is_storage=container.kind is Kind.STORAGE,
            modified_ms=last_modified_ms(container),
            own_triples=await self._own_triples(container),
            media_type=media_type,
        )
        return await run_work(work, size_bytes=container.size_bytes)

    async def _render(self, begun: _BegunListing, container: Metadata) -> AsyncIterator[bytes]:
        listing = begun.listing
        yield begun.head
        after = None
        while True:
            members = await self._store.list_members(
                container.path, after=after, limit=_PAGE_MEMBERS
            )
            if members:
                yield listing.page([listed_member(member) for member in members])
                after = members[-1].path
            if len(members) < _PAGE_MEMBERS:
                break
        yield listing.end()

    async def _own_triples(self, container: Metadata) -> Graph:
        if container.size_bytes == 0:
            return EMPTY_GRAPH
        return (await self._documents.stored_dataset(container)).default

    async def _is_current(self, container: Metadata) -> bool:
        snapshot = await self._store.read_metadata([container.path])
        return snapshot[container.path] == container


def _chosen(accept: str | None, offered: tuple[str, ...]) -> str:
    chosen = choose(accept, offered)
    if chosen is None:
        raise NotAcceptable(f"This resource can be had as {', '.join(offered)}")
    return chosen


class _BegunListing(NamedTuple):
    listing: Listing
    head: bytes


def _begun(
    *,
    container_url: str,
    is_storage: bool,
    modified_ms: int,
    own_triples: Graph,
    media_type: str,
) -> _BegunListing:
    listing = Listing(
        container_url=container_url,
        is_storage=is_storage,
        modified_ms=modified_ms,
        own_triples=own_triples,
        media_type=media_type,
    )
    return _BegunListing(listing, listing.begin())


def _key(path: ResourcePath, metadata: Metadata, form: str) -> RenderingKey:
    return path, state_version(metadata), form


def listed_member(member: Metadata) -> ListedMember:
    """What a listing tells about a member (C-24)."""
    return ListedMember(
        name=segment_name(member.path),
        is_container=member.kind.is_container,
        media_type=essence(member.content_type),
        size_bytes=member.size_bytes,
        modified_ms=last_modified_ms(member),
    )


async def _joined(pieces: list[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    async for piece in rest:
        yield piece
