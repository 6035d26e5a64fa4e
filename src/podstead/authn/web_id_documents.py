"""Reads the statements of WebID documents, from the store or from their servers.

An agent is trusted to have a WebID because of what the document of the WebID states: the providers
that may issue tokens for it, or the keys of the agent. Each kind of credentials extracts what it
needs. Documents of this server are read as they are now, without access rules and without the
network. What a version states is cached under that version, so it is never out of date.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from urllib.parse import urljoin

from podstead.authn.identity_status import LocalWebIds
from podstead.core.caches import ExpiringCache
from podstead.core.clock import Clock
from podstead.core.errors import (
    BodyTooLarge,
    OutboundError,
    OwnDocument,
    RemoteUnavailable,
    RequestRefused,
)
from podstead.core.media_types import HTML, JSON_LD
from podstead.outbound.foreign_documents import DocumentFetcher, FetchedDocument, Purpose
from podstead.rdf.graph import Graph, RdfParser
from podstead.rdf.html_islands import data_islands
from podstead.storage.document_reader import ChangingTooFast, DocumentReader
from podstead.storage.protocol import DocumentSource
from podstead.storage.records import Metadata

T = TypeVar("T")

FAILURE_S: Final = 30
MAX_CACHED_FAILURES: Final = 4096
CACHE_CHARACTERS: Final = 4 * 1024 * 1024
"""The total size of WebIDs and of the statements extracted from their documents."""
MAX_TRIPLES: Final = 10_000
MAX_DOCUMENT_BYTES: Final = 1024 * 1024
"""The limit for a document of this server; foreign documents have the same (A-111)."""
_UNREADABLE: Final = "The WebID's document could not be read"
_DISABLED: Final = "The WebID's account is disabled"
_MISNAMED: Final = "The WebID leads to this server but does not begin with its base URL"


class UnusableDocument(Exception):
    """The document cannot be read or parsed; ``str()`` is a fixed public phrase."""

    def __init__(self, phrase: str = _UNREADABLE) -> None:
        super().__init__(phrase)


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """The largest document that is read; ``None`` for no limit."""

    max_bytes: int | None = MAX_DOCUMENT_BYTES
    max_triples: int | None = MAX_TRIPLES


DEFAULT_LIMITS: Final = DocumentLimits()
UNLIMITED: Final = DocumentLimits(None, None)
"""Only for documents of this server, whose size was checked when they were stored."""


@dataclass(frozen=True, slots=True)
class ProfileSources:
    """Where WebID documents come from."""

    local: LocalWebIds
    store: DocumentSource
    foreign: DocumentFetcher
    parse: RdfParser
    clock: Clock


class WebIdDocuments(Generic[T]):
    """Extracts one kind of statement from WebID documents."""

    def __init__(
        self,
        sources: ProfileSources,
        *,
        extract: Callable[[Graph, str], T],
        weigh: Callable[[T], int],
        limits: DocumentLimits = DEFAULT_LIMITS,
    ) -> None:
        """``extract`` receives the graph of the document and the name by which it was requested,
        and may raise UnusableDocument; ``weigh`` returns the number of characters in a result."""
        self._sources = sources
        self._extract = extract
        self._limits = limits
        self._stored: DocumentReader[T] = DocumentReader(
            sources.store,
            self._interpret,
            kind="WebID documents",
            weigh=lambda _, found: weigh(found),
            max_weight=CACHE_CHARACTERS,
            max_bytes=limits.max_bytes,
        )
        self._unusable = ExpiringCache[str, bool](MAX_CACHED_FAILURES)

    def is_local(self, name: str) -> bool:
        """Whether the document of a WebID is on this server."""
        return self._sources.local.holds(name)

    async def stored(self, name: str) -> T | None:
        """What a document of this server states now; ``None`` if it does not exist.

        ``name`` is its URL, with or without a fragment. Raises UnusableDocument, also for the
        document of a disabled account.
        """
        path = self._sources.local.path_of(name)
        if path is None:
            raise UnusableDocument
        if await self._sources.local.is_disabled(name):
            raise UnusableDocument(_DISABLED)
        try:
            return await self._stored.current(name, path)
        except (BodyTooLarge, ChangingTooFast) as error:
            raise UnusableDocument from error

    async def _interpret(self, name: str, metadata: Metadata, content: bytes) -> T:
        return await self._read(content, metadata.content_type, _url_of(name), name)

    async def fetched(self, name: str) -> T:
        """Fetch a foreign document and return what it states. Raises UnusableDocument, and
        RemoteUnavailable if it cannot be fetched at present.

        An unusable document is not fetched again for a while (A-191); the fetcher itself remembers
        failed fetches.
        """
        sources = self._sources
        if self._unusable.get(name, sources.clock.now_ms()):
            raise UnusableDocument
        try:
            document = await sources.foreign.fetch(_url_of(name), Purpose.WEB_ID)
        except OwnDocument as error:
            raise UnusableDocument(_MISNAMED) from error
        except RemoteUnavailable:
            raise
        except OutboundError as error:
            raise UnusableDocument from error
        try:
            if document.media_type == HTML:
                return self._extract(await self._islands(document), name)
            return await self._read(document.content, document.media_type, document.final_url, name)
        except UnusableDocument:
            expires_at_ms = sources.clock.now_ms() + FAILURE_S * 1000
            self._unusable.put(name, value=True, expires_at_ms=expires_at_ms)
            raise

    async def _read(self, content: bytes, content_type: str, base_iri: str, name: str) -> T:
        return self._extract(await self._parse(content, content_type, base_iri), name)

    async def _islands(self, document: FetchedDocument) -> Graph:
        """The graph of all data islands of a page.

        Only foreign pages are read this way. On this server, writing identity statements needs
        Control, which is checked for RDF documents and not for pages.
        """
        try:
            islands = data_islands(document.content.decode())
            base_iri = urljoin(document.final_url, islands.base_reference)
        except ValueError as error:
            raise UnusableDocument from error
        graph = Graph()
        for text in islands.texts:
            graph |= await self._parse(text.encode(), JSON_LD, base_iri)
        if not islands.texts or _exceeds(len(graph), self._limits.max_triples):
            raise UnusableDocument
        return graph

    async def _parse(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        try:
            graph = await self._sources.parse(content, content_type, base_iri)
        except RemoteUnavailable:  # one of its JSON-LD contexts
            raise
        except (RequestRefused, OutboundError) as error:
            raise UnusableDocument from error
        if _exceeds(len(graph), self._limits.max_triples):
            raise UnusableDocument
        return graph


def _exceeds(size: int, limit: int | None) -> bool:
    return limit is not None and size > limit


def _url_of(name: str) -> str:
    return name.partition("#")[0]
