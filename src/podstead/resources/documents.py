"""Reads and writes RDF documents, both stored and received ones.

The pure ``rdf`` layer parses and serializes. This module gives it the bytes, the base IRI and the
JSON-LD contexts, and passes documents that would block other requests to ``costly_work``. Documents
that were patched are cached, the newest version of each; since a version identifies one state, a
cached document is never out of date.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from podstead.core import errors
from podstead.core.caches import BoundedCache
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.media_types import JSON_LD, RDF_TYPES, essence
from podstead.outbound.foreign_documents import DocumentFetcher, Purpose
from podstead.rdf import errors as rdf_errors
from podstead.rdf.codecs import Document, parse, serialize
from podstead.rdf.codes import RdfCodes
from podstead.rdf.graph import EMPTY_GRAPH, Dataset
from podstead.rdf.jsonld_contexts import Context, read_context
from podstead.rdf.limits import RdfLimits, check_size
from podstead.rdf.tasks import Conversion
from podstead.resources.codes import ResourceCodes
from podstead.resources.costly_work import CostlyWork, WorkTooCostly
from podstead.storage.document_reader import open_version
from podstead.storage.open_body import OpenBody, whole_body
from podstead.storage.protocol import DocumentSource
from podstead.storage.records import Metadata, Version


@dataclass(frozen=True, slots=True)
class ContextLibrary:
    """The JSON-LD contexts for parsing documents: the bundled ones, and those of origins that the
    operator has listed; no others are ever fetched (R-11, A-187)."""

    bundled: Mapping[str, Context]
    _: KW_ONLY
    fetcher: DocumentFetcher
    allowed_origins: frozenset[str]
    limits: RdfLimits

    async def further(self, unknown: rdf_errors.UnknownContext) -> Context:
        """Fetch the context that parsing a document needs, if the operator has listed its origin.

        Raises the given UnknownContext if the origin is not listed or does not provide the context,
        and UnavailableContext if the context is temporarily unavailable.
        """
        parts = urlsplit(unknown.url)
        if f"{parts.scheme}://{parts.netloc}".lower() not in self.allowed_origins:
            raise unknown
        try:
            fetched = await self.fetcher.fetch(unknown.url, Purpose.CONTEXT)
            return read_context(fetched.content, url=unknown.url, limits=self.limits)
        except errors.RemoteUnavailable as error:
            raise rdf_errors.UnavailableContext(unknown.url, error.retry_after_s) from error
        except (errors.OutboundError, errors.BadRequest) as error:
            raise unknown from error


COSTLY_FROM_BYTES = 64 * 1024
"""A document of this size takes about twenty milliseconds to read or write."""

_WORK_AT_ONCE = 100_000
"""About fifteen milliseconds. Contexts with more work (``RdfLimits.max_context_work``) are costly,
whatever the size of the document."""
_STORED_WORK = 20_000_000
"""What the contexts of a stored document may cost: more than those of a received one, because it
was accepted under other limits. A process bounds the time of a conversion."""
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
        self,
        *,
        base_url: str,
        store: DocumentSource,
        contexts: ContextLibrary,
        limits: RdfLimits,
        costly: CostlyWork,
    ) -> None:
        self._base_url = base_url
        self._store = store
        self._contexts = contexts
        self._limits = limits
        self.costly = costly
        self._limits_at_once = replace(
            limits, max_context_work=min(limits.max_context_work, _WORK_AT_ONCE)
        )
        self._limits_of_stored = replace(limits, max_context_work=_STORED_WORK)
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

    async def run(
        self, work: Callable[[], _Result], *, size_bytes: int, path: ResourcePath
    ) -> _Result:
        """Run ``work`` on RDF of this size at a path: directly if it is small, otherwise in its
        turn in a thread. Raises RateLimited and Overloaded."""
        if size_bytes < COSTLY_FROM_BYTES:
            return work()
        return await self.costly.in_thread(work, pod=storage_root(path) or "")

    async def parse(self, content: bytes, content_type: str, *, path: ResourcePath) -> Document:
        """Read bytes as RDF at a path. Raises MalformedRdf and UnknownContext."""
        return await self._parse(content, content_type, self.url_of(path), self._limits, path)

    async def parse_at(self, content: bytes, content_type: str, *, base_iri: str) -> Document:
        """Read bytes as RDF with any base IRI. Raises MalformedRdf and UnknownContext."""
        return await self._parse(content, content_type, base_iri, self._limits)

    async def _parse(
        self,
        content: bytes,
        content_type: str,
        base_iri: str,
        limits: RdfLimits,
        path: ResourcePath | None = None,
    ) -> Document:
        contexts = self._contexts.bundled
        for _ in range(_MAX_FETCHED_CONTEXTS):
            work = partial(
                parse, content, content_type, base_iri=base_iri, contexts=contexts, limits=limits
            )
            try:
                if len(content) < COSTLY_FROM_BYTES:
                    try:
                        document = work(limits=self._limits_at_once)
                    except rdf_errors.RdfTooComplex:
                        pass  # it may only be too costly to do directly
                    else:
                        return _limited(document, limits) if document.original else document
                pod = "" if path is None else storage_root(path) or ""
                return await self.costly.in_thread(work, pod=pod)
            except rdf_errors.UnknownContext as unknown:
                contexts = {**contexts, unknown.url: await self._contexts.further(unknown)}
        raise errors.BadRequest(ResourceCodes.TOO_MANY_CONTEXTS)

    async def write(self, document: Document, media_type: str, *, path: ResourcePath) -> bytes:
        """Serialize a document. The result is within the limits, so that it can be parsed again.

        Raises RdfTooLarge.
        """
        max_triples = self._limits.max_triples
        if len(document.dataset) > max_triples:
            raise rdf_errors.RdfTooLarge(RdfCodes.TOO_MANY_TRIPLES, number=max_triples)
        content = await self._written(document, media_type, at=path)
        check_size(content, self._limits)
        return content

    async def read(self, metadata: Metadata) -> Document:
        """Read a stored RDF resource.

        Raises Superseded if it has changed, UnknownContext, WorkTooCostly, and StorageError if the
        stored bytes cannot be parsed although they were accepted as RDF.
        """
        return await self._read(metadata, await self.read_bytes(metadata))

    async def _read(self, metadata: Metadata, content: bytes) -> Document:
        path, limits = metadata.path, self._limits_of_stored
        try:
            return await self._parse(
                content, metadata.content_type, self.url_of(path), limits, path
            )
        except rdf_errors.UnknownContext:
            raise
        except (
            rdf_errors.RdfTooComplex,
            rdf_errors.RdfTooLarge,
        ) as error:  # accepted under other limits
            raise WorkTooCostly from error
        except errors.BadRequest as error:
            raise errors.StorageError(
                f"The stored document {metadata.path} cannot be read"
            ) from error

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
        unknown JSON-LD context (see docs/evidence/decisions)."""
        if metadata is None or not is_rdf(metadata.content_type):
            return EMPTY_DATASET
        try:
            return (await self.read_cached(metadata)).dataset
        except rdf_errors.UnknownContext:
            return EMPTY_DATASET

    async def read_bytes(self, metadata: Metadata) -> bytes:
        """The whole body of an RDF resource. Raises Superseded."""
        return await whole_body(await self.open(metadata))

    async def open(self, metadata: Metadata) -> OpenBody:
        """Open a body. Raises Superseded."""
        return await open_version(self._store, metadata)

    async def convert(self, metadata: Metadata, media_type: str, *, at: ResourcePath) -> bytes:
        """Convert a stored RDF resource to another media type, with relative IRIs for the path
        ``at``.

        Raises Superseded, and NotAcceptable for an unknown context, which it names (R-11), or if
        the conversion takes too long.
        """
        content = await self.read_bytes(metadata)
        stored = essence(metadata.content_type)
        try:
            # Compacting JSON-LD with its own context takes ten times as long.
            factor = 10 if stored == media_type == JSON_LD else 1
            if len(content) * factor >= COSTLY_FROM_BYTES:
                return await self._convert_elsewhere(metadata, content, media_type, at)
            document = await self._read(metadata, content)
            return await self._written(document, media_type, at=at)
        except rdf_errors.UnavailableContext:
            raise
        except rdf_errors.UnknownContext as unknown:
            raise errors.NotAcceptable(
                f"This document is available only as {stored}: {unknown}"
            ) from unknown
        except WorkTooCostly as error:
            raise errors.NotAcceptable(
                f"This document is available only as {stored}: to convert it takes more processor "
                "time or memory than the server gives to it"
            ) from error

    async def _convert_elsewhere(
        self, metadata: Metadata, content: bytes, media_type: str, at: ResourcePath
    ) -> bytes:
        fetched: Mapping[str, Context] = {}
        for _ in range(_MAX_FETCHED_CONTEXTS):
            task = Conversion(
                content,
                metadata.content_type,
                media_type,
                base_iri=self.url_of(metadata.path),
                written_at=self.url_of(at),
                contexts={url: context.value for url, context in fetched.items()},
                # The process bounds the time.
                limits=replace(self._limits, max_context_work=sys.maxsize),
            )
            try:
                return await self.costly.in_process(task, pod=storage_root(at) or "")
            except rdf_errors.UnknownContext as unknown:
                fetched = {**fetched, unknown.url: await self._contexts.further(unknown)}
            except (errors.NotAcceptable, WorkTooCostly):
                raise
            except rdf_errors.RdfTooLarge as error:
                raise WorkTooCostly from error
            except errors.BadRequest as error:
                raise errors.StorageError(
                    f"The stored document {metadata.path} cannot be read"
                ) from error
        raise errors.BadRequest(ResourceCodes.TOO_MANY_CONTEXTS)

    async def _written(self, document: Document, media_type: str, *, at: ResourcePath) -> bytes:
        work = partial(serialize, document, media_type, base_iri=self.url_of(at))
        size_bytes = len(document.dataset) * BYTES_OF_A_TRIPLE
        if document.original is not None and essence(media_type) == JSON_LD:
            size_bytes = (
                COSTLY_FROM_BYTES  # compacting with its own context takes ten times as long
            )
        return await self.run(work, size_bytes=size_bytes, path=at)


def _limited(document: Document, limits: RdfLimits) -> Document:
    """The JSON-LD document as if it had been read with these limits, which apply when it is
    written."""
    original = document.original and replace(document.original, limits=limits)
    return msgspec.structs.replace(document, original=original)


def is_rdf(content_type: str) -> bool:
    """Whether a stored media type is an RDF type that the server converts (R-6)."""
    return essence(content_type) in RDF_TYPES
