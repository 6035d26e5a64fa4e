"""How is a container answered, be it empty or with a hundred thousand members? (C-23 to C-30)

A listing of common size is made whole. A longer one is sent while its members are read, page by
page, so that it takes the memory of a page for each reader, and its first byte does not wait for
its last member. What was made is kept by version, also while it is being sent.

What a listing promises while others write: the members are read in the order of their names, each
page as of one moment. So every member that is there during the whole of the reading stands in it
exactly once, none stands twice, and of each all is told as of one moment. A member that comes or
goes meanwhile may stand in it or not. The entity tag is that of the state at the beginning; once
anything came or went, that state is past, and no later request is answered by its tag.
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
from podstead.resources.documents import Documents, run_work
from podstead.resources.entity_tags import last_modified_ms, state_version
from podstead.resources.outcome import Representation
from podstead.resources.rendering_cache import RenderingCache, RenderingKey
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Metadata, ResourceKind

PAGE_MEMBERS = 100
"""Some tens of KiB, and a millisecond or two to read and write."""

MAX_WHOLE_BYTES = 256 * 1024
"""A longer listing is sent in pieces: this much and a page is what a slow reader holds."""


_PIECE_BYTES = 64 * 1024


class Listings:
    """Represents containers."""

    def __init__(
        self, *, store: ResourceStore, documents: Documents, renderings: RenderingCache
    ) -> None:
        self._store = store
        self._documents = documents
        self._renderings = renderings
        self._keeping_what_is_sent = False

    async def without_members(self, container: Metadata, media_type: str) -> Representation:
        """A container as it would be if it were empty (LDP 1.0 section 7.2), in the chosen form.

        Reads no member. Raises Superseded and NotExpressible.
        """
        key = _key(container, f"{media_type}; minimal")
        kept = self._renderings.get(key)
        if kept is None:
            begun = await self._begin(container, media_type)
            kept = begun.head + begun.listing.end()
            self._renderings.put(key, kept)
        return Representation(media_type, kept, len(kept))

    async def whole(self, container: Metadata, media_type: str) -> Representation:
        """A container with its members, in the chosen form. Raises Superseded, NotExpressible and
        StorageError; the latter also while it is sent."""
        key = _key(container, media_type)
        kept = self._renderings.get(key)
        if kept is not None:
            return _kept(media_type, kept)
        pieces: deque[bytes] = deque()
        size_bytes = 0
        rest = self._render(await self._begin(container, media_type), container)
        async for piece in rest:
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > MAX_WHOLE_BYTES:
                sent = self._kept_while_sent(container, key, _joined(pieces, rest))
                return Representation(media_type, sent, None)
        content = b"".join(pieces)
        await self._keep(container, key, content)
        return Representation(media_type, content, size_bytes)

    async def _begin(self, container: Metadata, media_type: str) -> _Begun:
        """A listing with all but its members written, which may be as long as any document."""
        work = partial(
            _begun,
            container_url=self._documents.url_of(container.path),
            is_storage=container.kind is ResourceKind.STORAGE,
            modified_ms=last_modified_ms(container),
            own_triples=await self._own_triples(container),
            media_type=media_type,
        )
        return await run_work(work, size_bytes=container.size_bytes)

    async def _own_triples(self, container: Metadata) -> Graph:
        if container.size_bytes == 0:
            return EMPTY_GRAPH
        return (await self._documents.read_dataset(container)).default

    async def _render(self, begun: _Begun, container: Metadata) -> AsyncIterator[bytes]:
        yield begun.head
        async for members in pages_of_members(self._store, container.path):
            yield begun.listing.page([listed_member(member) for member in members])
        yield begun.listing.end()

    async def _kept_while_sent(
        self, container: Metadata, key: RenderingKey, pieces: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """The pieces; what they make is kept if it is small enough to be.

        One at a time, since a slow reader holds what is kept for as long as it takes.
        """
        if self._keeping_what_is_sent:
            async for piece in pieces:
                yield piece
            return
        self._keeping_what_is_sent = True
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
                await self._keep(container, key, bytes(sent))
        finally:
            self._keeping_what_is_sent = False

    async def _keep(self, container: Metadata, key: RenderingKey, content: bytes) -> None:
        """Keep what was made, unless the container changed meanwhile."""
        snapshot = await self._store.read_metadata([container.path])
        if snapshot[container.path] == container:
            self._renderings.put(key, content)


async def pages_of_members(
    store: ResourceStore, container: ResourcePath
) -> AsyncIterator[Sequence[Metadata]]:
    """All members of a container in the order of their paths, each page as of one moment, with a
    chance for other requests in between. Raises StorageError."""
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
    """What a listing tells about a member (C-24)."""
    return ListedMember(
        name=segment_name(member.path),
        is_container=member.kind.is_container,
        media_type=essence(member.content_type),
        size_bytes=member.size_bytes,
        modified_ms=last_modified_ms(member),
    )


class _Begun(NamedTuple):
    listing: Listing
    head: bytes


def _begun(
    *,
    container_url: str,
    is_storage: bool,
    modified_ms: int,
    own_triples: Graph,
    media_type: str,
) -> _Begun:
    listing = Listing(
        container_url=container_url,
        is_storage=is_storage,
        modified_ms=modified_ms,
        own_triples=own_triples,
        media_type=media_type,
    )
    return _Begun(listing, listing.begin())


def _key(container: Metadata, form: str) -> RenderingKey:
    return container.path, state_version(container), form


def _kept(media_type: str, content: bytes) -> Representation:
    if len(content) <= MAX_WHOLE_BYTES:
        return Representation(media_type, content, len(content))
    return Representation(media_type, _cut(content), len(content))


async def _cut(content: bytes) -> AsyncIterator[bytes]:
    """Content in pieces: a slow reader shall hold no copy of all of it."""
    for first in range(0, len(content), _PIECE_BYTES):
        yield content[first : first + _PIECE_BYTES]


async def _joined(pieces: deque[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    while pieces:
        yield pieces.popleft()
    async for piece in rest:
        yield piece
