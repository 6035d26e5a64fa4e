"""How are RDF documents read and written, stored ones and received ones?

The pure ``rdf`` layer parses and serializes. This module gives it the bytes, the base IRI and the
JSON-LD contexts, and a worker thread for documents that would block other requests. Documents that
were patched are cached, the newest version of each; since a version identifies one state, a cached
document is never out of date.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TypeVar

from podstead.core.bounded_cache import BoundedCache
from podstead.core.errors import BadRequest, NotAcceptable, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import JSON_LD, RDF_TYPES, essence
from podstead.rdf.codecs import Document, parse, serialize
from podstead.rdf.errors import RdfTooLarge, UnavailableContext, UnknownContext
from podstead.rdf.graph import EMPTY_GRAPH, Dataset
from podstead.rdf.limits import RdfLimits, check_size
from podstead.resources.contexts import ContextLibrary
from podstead.storage.document_reader import open_version
from podstead.storage.open_body import OpenBody, whole_body
from podstead.storage.protocol import DocumentSource
from podstead.storage.records import Metadata, Version

_THREAD_FROM_BYTES = 64 * 1024
_MAX_FETCHED_CONTEXTS = 16
BYTES_OF_A_TRIPLE = 40
"""The approximate size of a triple in Turtle."""

CACHE_BYTES = 32 * 1024 * 1024
_CACHED_BYTES_OF_A_TRIPLE = 1024
"""The memory of a triple with its terms and index entries, rounded up."""

EMPTY_DATASET = Dataset(EMPTY_GRAPH)
_Result = TypeVar("_Result")


class Documents:
    """Reads and converts RDF documents."""

    def __init__(
        self, *, base_url: str, store: DocumentSource, contexts: ContextLibrary, limits: RdfLimits
    ) -> None:
        self._base_url = base_url
        self._store = store
        self._contexts = contexts
        self._limits = limits
        self._cache: BoundedCache[ResourcePath, tuple[Version, Document]] = BoundedCache(
            CACHE_BYTES
        )

    @property
    def max_bytes(self) -> int:
        """The maximum size of an RDF body."""
        return self._limits.max_bytes

    def url_of(self, path: ResourcePath) -> str:
        """The absolute URL of a resource, which is the base IRI of its document (R-7)."""
        return self._base_url + path

    async def parse(self, content: bytes, content_type: str, *, path: ResourcePath) -> Document:
        """Read bytes as RDF at a path. Raises MalformedRdf and UnknownContext."""
        return await self.parse_at(content, content_type, base_iri=self.url_of(path))

    async def parse_at(self, content: bytes, content_type: str, *, base_iri: str) -> Document:
        """Read bytes as RDF with any base IRI. Raises MalformedRdf and UnknownContext."""
        contexts = self._contexts.bundled
        for _ in range(_MAX_FETCHED_CONTEXTS):
            work = partial(
                parse,
                content,
                content_type,
                base_iri=base_iri,
                contexts=contexts,
                limits=self._limits,
            )
            try:
                return await run_work(work, size_bytes=len(content))
            except UnknownContext as unknown:
                further = await self._contexts.further(unknown)
                contexts = {**contexts, unknown.url: further}
        raise BadRequest("The document refers to too many JSON-LD contexts")

    async def write(self, document: Document, media_type: str, *, path: ResourcePath) -> bytes:
        """Serialize a document. The result is within the limits, so that it can be parsed again.

        Raises RdfTooLarge.
        """
        max_triples = self._limits.max_triples
        if len(document.dataset) > max_triples:
            raise RdfTooLarge(f"An RDF document can have at most {max_triples} triples")
        content = await self._written(document, media_type, at=path)
        check_size(content, self._limits)
        return content

    async def read(self, metadata: Metadata) -> Document:
        """Read a stored RDF resource.

        Raises Superseded if it has changed, UnknownContext, and StorageError if the stored bytes
        cannot be parsed although they were accepted as RDF.
        """
        content = await self.read_bytes(metadata)
        try:
            return await self.parse(content, metadata.content_type, path=metadata.path)
        except UnknownContext:
            raise
        except BadRequest as error:
            raise StorageError(f"The stored document {metadata.path} cannot be read") from error

    async def read_cached(self, metadata: Metadata) -> Document:
        """As :meth:`read`, but from the cache if possible.

        A cached document has the same triples, but their order, the blank node labels and the
        prefixes can differ. It must not be used for responses, whose bytes an entity tag
        identifies.
        """
        cached = self._cache.get(metadata.path)
        if cached is not None and cached[0] == metadata.version:
            return cached[1]
        return await self.read(metadata)

    def cache(self, path: ResourcePath, version: Version, document: Document) -> None:
        """Cache the document of a version that is about to be stored."""
        size = 1 + len(document.prefixes) + len(document.dataset)
        if (weight := size * _CACHED_BYTES_OF_A_TRIPLE) <= CACHE_BYTES // 8:
            self._cache.put(path, (version, document), weight=weight)

    async def read_dataset(self, metadata: Metadata | None) -> Dataset:
        """The triples of a stored resource; none if it does not exist, is not RDF, or has an
        unknown JSON-LD context (see docs/decisions)."""
        if metadata is None or not is_rdf(metadata.content_type):
            return EMPTY_DATASET
        try:
            return (await self.read_cached(metadata)).dataset
        except UnknownContext:
            return EMPTY_DATASET

    async def read_bytes(self, metadata: Metadata) -> bytes:
        """The whole body of an RDF resource. Raises Superseded."""
        return await whole_body(await self.open(metadata))

    async def open(self, metadata: Metadata) -> OpenBody:
        """Open a body. Raises Superseded and StorageError."""
        return await open_version(self._store, metadata)

    async def convert(self, metadata: Metadata, media_type: str, *, at: ResourcePath) -> bytes:
        """Convert a stored RDF resource to another media type, with relative IRIs for the path
        ``at``.

        Raises NotAcceptable, which names an unknown context (R-11), Superseded and StorageError.
        """
        try:
            document = await self.read(metadata)
        except UnavailableContext:
            raise
        except UnknownContext as unknown:
            raise NotAcceptable(
                f"This document is available only as {essence(metadata.content_type)}: {unknown}"
            ) from unknown
        return await self._written(document, media_type, at=at)

    async def _written(self, document: Document, media_type: str, *, at: ResourcePath) -> bytes:
        work = partial(serialize, document, media_type, base_iri=self.url_of(at))
        if document.original is not None and essence(media_type) == JSON_LD:
            # Compacting with the document's own context takes ten times as long.
            return await asyncio.to_thread(work)
        return await run_work(work, size_bytes=len(document.dataset) * BYTES_OF_A_TRIPLE)


def is_rdf(content_type: str) -> bool:
    """Whether a stored media type is an RDF type that the server converts (R-6)."""
    return essence(content_type) in RDF_TYPES


async def run_work(work: partial[_Result], *, size_bytes: int) -> _Result:
    """Run ``work`` on RDF of this size: directly if it is small, else in a thread."""
    if size_bytes < _THREAD_FROM_BYTES:
        return work()
    return await asyncio.to_thread(work)
