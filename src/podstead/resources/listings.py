"""Represents containers, from empty ones to those with a hundred thousand members (C-23 to C-30).

A listing of common size is rendered completely before it is sent. A longer one is sent page by page
while its members are read, so each reader takes the memory of one page, and the first byte does not
wait for the last member. Listings are cached by version, including those that are sent in pages.

Consistency while others write: members are read in the order of their names, and each page is read
in one snapshot. A member that exists during the whole read is therefore listed exactly once, no
member is listed twice, and everything listed about a member is from one snapshot. A member that is
created or deleted during the read may or may not be listed. The entity tag is that of the state at
the beginning; after any change it no longer matches, so no later request is answered by it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import NamedTuple

from podstead.core.identifiers import ResourcePath, segment_name
from podstead.core.media_types import essence
from podstead.rdf.graph import EMPTY_GRAPH, Graph
from podstead.rdf.listing import ListedMember, Listing
from podstead.resources.documents import Documents
from podstead.resources.entity_tags import last_modified_ms, state_version
from podstead.resources.outcome import Representation
from podstead.resources.rendering_cache import RenderingCache, RenderingKey
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Metadata, ResourceKind

PAGE_MEMBERS = 100
"""A page is some tens of KiB, and takes one or two milliseconds to read and render."""

MAX_WHOLE_BYTES = 256 * 1024
"""A longer listing is sent in pieces, so that a slow reader holds this much and one page."""


_PIECE_BYTES = 64 * 1024


class Listings:
    """Represents containers."""

    def __init__(
        self, *, store: ResourceStore, documents: Documents, renderings: RenderingCache
    ) -> None:
        self._store = store
        self._documents = documents
        self._renderings = renderings
        self._is_collecting = False

    async def without_members(self, container: Metadata, media_type: str) -> Representation:
        """A container without its members (LDP 1.0, section 7.2), in the given media type.

        Reads no members. Raises Superseded and NotExpressible.
        """
        key = _key(container, f"{media_type}; minimal")
        cached = self._renderings.get(key)
        if cached is None:
            started = await self._begin(container, media_type)
            cached = started.head + started.listing.end()
            self._renderings.put(key, cached)
        return Representation(media_type, cached, len(cached))

    async def whole(self, container: Metadata, media_type: str) -> Representation:
        """A container with its members, in the given media type.

        Raises Superseded and NotExpressible; iterating over the pieces can raise StorageError.
        """
        key = _key(container, media_type)
        cached = self._renderings.get(key)
        if cached is not None:
            return _from_cache(media_type, cached)
        pieces: deque[bytes] = deque()
        size_bytes = 0
        rest = self._render(await self._begin(container, media_type), container)
        async for piece in rest:
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > MAX_WHOLE_BYTES:
                sent = self._cache_while_sent(container, key, _joined(pieces, rest))
                return Representation(media_type, sent, None)
        content = b"".join(pieces)
        await self._cache(container, key, content)
        return Representation(media_type, content, size_bytes)

    async def _begin(self, container: Metadata, media_type: str) -> _StartedListing:
        """A listing with everything but its members, which can be as long as any document."""
        work = partial(
            _start,
            container_url=self._documents.url_of(container.path),
            is_storage=container.kind is ResourceKind.STORAGE,
            modified_ms=last_modified_ms(container),
            own_triples=await self._own_triples(container),
            media_type=media_type,
        )
        return await self._documents.run(work, size_bytes=container.size_bytes, path=container.path)

    async def _own_triples(self, container: Metadata) -> Graph:
        if container.size_bytes == 0:
            return EMPTY_GRAPH
        return (await self._documents.read_dataset(container)).default

    async def _render(self, started: _StartedListing, container: Metadata) -> AsyncIterator[bytes]:
        yield started.head
        async for members in pages_of_members(self._store, container.path):
            yield started.listing.page([listed_member(member) for member in members])
        yield started.listing.end()

    async def _cache_while_sent(
        self, container: Metadata, key: RenderingKey, pieces: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """Pass the pieces on, and cache them afterwards if they are small enough.

        Only for one listing at a time: a slow reader holds the collected bytes until the end.
        """
        if self._is_collecting:
            async for piece in pieces:
                yield piece
            return
        self._is_collecting = True
        try:
            sent = bytearray()
            fits = True
            async for piece in pieces:
                yield piece
                fits = fits and len(sent) + len(piece) <= self._renderings.largest_bytes
                if fits:
                    sent += piece
                else:
                    sent.clear()
            if fits:
                await self._cache(container, key, bytes(sent))
        finally:
            self._is_collecting = False

    async def _cache(self, container: Metadata, key: RenderingKey, content: bytes) -> None:
        """Cache a listing, unless the container has changed since."""
        snapshot = await self._store.read_metadata([container.path])
        if snapshot[container.path] == container:
            self._renderings.put(key, content)


async def pages_of_members(
    store: ResourceStore, container: ResourcePath
) -> AsyncIterator[Sequence[Metadata]]:
    """All members of a container in the order of their paths, in pages.

    Each page is read in one snapshot. Other tasks can run between two pages.
    """
    after = None
    while True:
        members = await store.list_members(container, after=after, limit=PAGE_MEMBERS)
        if members:
            yield members
        if len(members) < PAGE_MEMBERS:
            return
        after = members[-1].path
        await asyncio.sleep(0)


def listed_member(member: Metadata) -> ListedMember:
    """What a listing states about a member (C-24)."""
    return ListedMember(
        name=segment_name(member.path),
        is_container=member.kind.is_container,
        media_type=essence(member.content_type),
        size_bytes=member.size_bytes,
        modified_ms=last_modified_ms(member),
    )


class _StartedListing(NamedTuple):
    listing: Listing
    head: bytes


def _start(
    *,
    container_url: str,
    is_storage: bool,
    modified_ms: int,
    own_triples: Graph,
    media_type: str,
) -> _StartedListing:
    listing = Listing(
        container_url=container_url,
        is_storage=is_storage,
        modified_ms=modified_ms,
        own_triples=own_triples,
        media_type=media_type,
    )
    return _StartedListing(listing, listing.begin())


def _key(container: Metadata, form: str) -> RenderingKey:
    return container.path, state_version(container), form


def _from_cache(media_type: str, content: bytes) -> Representation:
    if len(content) <= MAX_WHOLE_BYTES:
        return Representation(media_type, content, len(content))
    return Representation(media_type, _cut(content), len(content))


async def _cut(content: bytes) -> AsyncIterator[bytes]:
    """Content in pieces, so that a slow reader does not hold a copy of all of it."""
    for first in range(0, len(content), _PIECE_BYTES):
        yield content[first : first + _PIECE_BYTES]


async def _joined(pieces: deque[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    while pieces:
        yield pieces.popleft()
    async for piece in rest:
        yield piece
