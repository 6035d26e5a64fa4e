"""Answers GET and HEAD: content negotiation, conditional requests, ranges (R-1 to R-5, R-8), and
the listings of containers, from empty ones to those with a hundred thousand members (C-23 to C-30).

A document is sent byte for byte as stored if its own media type was negotiated, and converted
otherwise. Conversions and listings are cached by version.

A listing of common size is rendered completely before it is sent. A longer one is sent page by page
while its members are read, so each reader takes the memory of one page, and the first byte does not
wait for the last member. Members are read in the order of their names, and each page in one
snapshot. A member that exists during the whole read is therefore listed exactly once, no member is
listed twice, and everything listed about a member is from one snapshot. A member that is created or
deleted during the read may or may not be listed. The entity tag is that of the state at the
beginning; after any change it no longer matches, so no later request is answered by it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from functools import partial

from msgspec.structs import replace

from podstead.core import identifiers
from podstead.core.caches import BoundedCache
from podstead.core.conditional import PreconditionResult, evaluate_read
from podstead.core.errors import NotAcceptable
from podstead.core.header_fields import MINIMAL_CONTAINER, ByteRange, if_range_holds, select_range
from podstead.core.media_types import RDF_TYPES, RDF_XML, choose, essence, excludes
from podstead.core.operation import Operation
from podstead.core.request_context import requester, requester_agent
from podstead.rdf.codecs import serialize
from podstead.rdf.graph import EMPTY_GRAPH, Graph
from podstead.rdf.listing import LISTING_TYPES, ListedMember, Listing, listing
from podstead.resources.context import ResourceContext
from podstead.resources.documents import Documents
from podstead.resources.entity_tags import entity_tag, last_modified_ms, state_version
from podstead.resources.outcome import Outcome, Representation, Result
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Metadata, ResourceKind
from podstead.wac.gate import StorageOwners

RenderingKey = tuple[str, str, str]
"""The path, and the version part and form of the entity tag. Different bytes have different
keys."""

_OVERHEAD_BYTES = 512
"""The memory of an entry besides its content and path, rounded up."""


class RenderingCache:
    """The most recently used renderings, up to ``capacity_bytes``: the newest version of each form
    of a resource.

    An entry holds the version that it was made from, so nothing is invalidated when a resource
    changes: the rendering of the new state replaces the old one. Otherwise obsolete listings of a
    container with many writes would fill the cache.
    """

    def __init__(self, *, capacity_bytes: int) -> None:
        self._entries: BoundedCache[tuple[str, str], tuple[str, bytes]]
        self._entries = BoundedCache(capacity_bytes)
        self.largest_bytes = capacity_bytes // 8
        """The size above which a rendering is not cached: it would evict too many others."""
        self._last_large: tuple[RenderingKey, bytes] | None = None

    def get(self, key: RenderingKey) -> bytes | None:
        """The rendering, if it is still here."""
        last = self._last_large
        if last is not None and last[0] == key:
            return last[1]
        path, version, form = key
        cached = self._entries.get((path, form))
        return None if cached is None or cached[0] != version else cached[1]

    def put(self, key: RenderingKey, content: bytes) -> None:
        """Cache a rendering in place of that of another version. Of those larger than
        :attr:`largest_bytes`, the last is kept, so that a repeated request need not render it
        again."""
        path, version, form = key
        if len(content) <= self.largest_bytes:
            weight = len(content) + len(path) + _OVERHEAD_BYTES
            self._entries.put((path, form), (version, content), weight=weight)
        elif self.largest_bytes:
            self._last_large = key, content


_ConversionKey = tuple[RenderingKey, str, str | None]
"""A conversion and its requester."""


class Representations:
    """Negotiates media types, and produces the representations of documents."""

    def __init__(self, documents: Documents, renderings: RenderingCache) -> None:
        self._documents = documents
        self._renderings = renderings
        self._converting: dict[_ConversionKey, asyncio.Task[bytes]] = {}

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
        path = (
            identifiers.description_of(metadata.path)
            if metadata.kind.is_container
            else metadata.path
        )
        key = _key(path, metadata, media_type)
        cached = self._renderings.get(key)
        if cached is None:
            if head:
                return Representation(media_type, None, None)
            cached = await self._convert_once(key, metadata, media_type, path)
        return Representation(media_type, cached, len(cached))

    async def _convert_once(
        self, key: RenderingKey, metadata: Metadata, media_type: str, path: identifiers.ResourcePath
    ) -> bytes:
        """Convert a document once for all concurrent requests of one requester. The end of one
        request does not end it for the others."""
        conversion_key = key, requester(), requester_agent()
        converting = self._converting.get(conversion_key)
        if converting is None:
            converting = asyncio.create_task(self._convert(key, metadata, media_type, path))
            self._converting[conversion_key] = converting
            converting.add_done_callback(partial(self._conversion_done, conversion_key))
        return await asyncio.shield(converting)

    def _conversion_done(
        self, conversion_key: _ConversionKey, converting: asyncio.Task[bytes]
    ) -> None:
        del self._converting[conversion_key]
        if not converting.cancelled():
            converting.exception()  # perhaps no request is left to receive it

    async def _convert(
        self, key: RenderingKey, metadata: Metadata, media_type: str, path: identifiers.ResourcePath
    ) -> bytes:
        converted = await self._documents.convert(metadata, media_type, at=path)
        self._renderings.put(key, converted)
        return converted


def _chosen(accept: str | None, offered: tuple[str, ...]) -> str:
    chosen = choose(accept, offered)
    if chosen is None:
        raise NotAcceptable(f"This resource is available as {', '.join(offered)}")
    return chosen


def _key(path: identifiers.ResourcePath, metadata: Metadata, media_type: str) -> RenderingKey:
    return path, state_version(metadata), media_type


PAGE_MEMBERS = 100
"""A page is some tens of KiB, and takes one or two milliseconds to read and render."""

MAX_WHOLE_BYTES = 256 * 1024
"""A longer listing is sent in pieces, so that a slow reader holds this much and one page."""


_PIECE_BYTES = 64 * 1024


class Listings:
    """Represents containers."""

    def __init__(
        self, store: ResourceStore, documents: Documents, renderings: RenderingCache
    ) -> None:
        self._store = store
        self._documents = documents
        self._renderings = renderings
        self._is_collecting = False

    async def without_members(self, container: Metadata, media_type: str) -> Representation:
        """A container without its members (LDP 1.0, section 7.2), in the given media type.

        Reads no members. Raises Superseded and NotExpressible.
        """
        key = _key(container.path, container, f"{media_type}; minimal")
        cached = self._renderings.get(key)
        if cached is None:
            begun = await self._begin(container, media_type)
            cached = begun.head + begun.foot
            self._renderings.put(key, cached)
        return Representation(media_type, cached, len(cached))

    async def whole(self, container: Metadata, media_type: str) -> Representation:
        """A container with its members, in the given media type.

        Raises Superseded and NotExpressible; iterating over the pieces can raise StorageError.
        """
        key = _key(container.path, container, media_type)
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

    async def _begin(self, container: Metadata, media_type: str) -> Listing:
        """A listing with everything but its members, which can be as long as any document."""
        work = partial(
            listing,
            self._documents.url_of(container.path),
            media_type,
            is_storage=container.kind is ResourceKind.STORAGE,
            modified_ms=last_modified_ms(container),
            own_triples=await self._own_triples(container),
        )
        return await self._documents.run(work, size_bytes=container.size_bytes, path=container.path)

    async def _own_triples(self, container: Metadata) -> Graph:
        if container.size_bytes == 0:
            return EMPTY_GRAPH
        return (await self._documents.read_dataset(container)).default

    async def _render(self, begun: Listing, container: Metadata) -> AsyncIterator[bytes]:
        yield begun.head
        async for members in pages_of_members(self._store, container.path):
            yield begun.page([listed_member(member) for member in members])
        yield begun.foot

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
    store: ResourceStore,
    container: identifiers.ResourcePath,
    *,
    page_members: int = PAGE_MEMBERS,
) -> AsyncIterator[Sequence[Metadata]]:
    """All members of a container in the order of their paths, in pages.

    Each page is read in one snapshot. Other tasks can run between two pages.
    """
    after = None
    while True:
        members = await store.list_members(container, after=after, limit=page_members)
        if members:
            yield members
        if len(members) < page_members:
            return
        after = members[-1].path
        await asyncio.sleep(0)


def listed_member(member: Metadata) -> ListedMember:
    """What a listing states about a member (C-24)."""
    return ListedMember(
        name=identifiers.segment_name(member.path),
        is_container=member.kind.is_container,
        media_type=essence(member.content_type),
        size_bytes=member.size_bytes,
        modified_ms=last_modified_ms(member),
    )


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


class ResourceReader:
    """Answers reads of resources that exist."""

    def __init__(
        self, context: ResourceContext, *, cache_bytes: int, named_owners: StorageOwners | None
    ) -> None:
        """``named_owners`` gives the published owners of storages; ``None`` to publish none."""
        renderings = RenderingCache(capacity_bytes=cache_bytes)
        self._representations = Representations(context.documents, renderings)
        self._listings = Listings(context.store, context.documents, renderings)
        self._named_owners = named_owners

    async def answer(self, operation: Operation, existing: Metadata) -> Outcome:
        """The outcome of an authorized GET or HEAD.

        Content negotiation precedes the evaluation of conditional headers (P-23). Raises
        NotAcceptable, PreconditionFailed, RangeNotSatisfiable, and Superseded if the resource has
        changed since ``existing`` was read.
        """
        if (
            self._named_owners is None
            or identifiers.storage_root(operation.target) != operation.target
        ):
            return await self._answer(operation, existing)
        owner = await self._named_owners.owner_of(operation.target)
        return replace(await self._answer(operation, existing), owner=owner)

    async def _answer(self, operation: Operation, existing: Metadata) -> Outcome:
        as_listing = existing.kind.is_container and identifiers.is_container(operation.target)
        media_type = self._representations.choose(existing, operation.accept, as_listing=as_listing)
        without_members = as_listing and operation.preferences.without_members
        etag = entity_tag(existing, media_type, without_members=without_members)
        if operation.conditions.any_given:
            verdict = evaluate_read(
                operation.conditions, etag=etag, modified_ms=last_modified_ms(existing)
            )
            if verdict is PreconditionResult.NOT_MODIFIED:
                return Outcome(Result.NOT_MODIFIED, existing, etag)
        if as_listing:
            representation = await self._listing(operation, existing, media_type)
        else:
            head = operation.method == "HEAD"
            representation = await self._representations.document(existing, media_type, head=head)
        chosen = _range(operation, representation, etag)
        result = Result.REPRESENTED if chosen is None else Result.PARTIAL
        return Outcome(result, existing, etag, representation, chosen)

    def no_description(self, operation: Operation) -> Outcome:
        """The outcome of reading a description that does not exist yet (C-30).

        Raises NotAcceptable.
        """
        representation = self._representations.empty_description(operation.accept)
        return Outcome(Result.REPRESENTED, representation=representation)

    async def _listing(
        self, operation: Operation, container: Metadata, media_type: str
    ) -> Representation:
        head = operation.method == "HEAD"
        if head and media_type != RDF_XML:
            return Representation(media_type, None, None)  # not rendered, since it is not sent
        if head or operation.preferences.without_members:
            # Rendered even for HEAD: only that shows whether RDF/XML can express the triples of the
            # container. No members are read.
            rendered = await self._listings.without_members(container, media_type)
            return Representation(media_type, None, None) if head else rendered
        return await self._listings.whole(container, media_type)


def without_members(operation: Operation, container: Metadata) -> tuple[Operation, Metadata]:
    """The read of a container by an agent that must not know its members.

    The state does not contain theirs, so neither the entity tag nor the date tells when one was
    created or deleted.
    """
    return (
        replace(operation, preferences=MINIMAL_CONTAINER),
        replace(container, members_version=None, members_modified_ms=None),
    )


def _range(operation: Operation, representation: Representation, etag: str) -> ByteRange | None:
    """The requested byte range, if this representation supports ranges (P-27); else ``None``.

    Times are too coarse to distinguish states, so an If-Range with a date gets the whole.
    """
    if operation.range is None or operation.method == "HEAD" or not representation.verbatim:
        return None
    size_bytes = representation.size_bytes
    if size_bytes is None or not if_range_holds(operation.if_range, etag, None):
        return None
    return select_range(operation.range, size_bytes)
