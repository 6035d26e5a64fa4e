"""Does a WebID trust this provider to speak for it? (Solid-OIDC section 9.1, A-109)

Anybody can run a provider that issues tokens for any WebID; what makes one believable is that the
WebID's own document names the provider by ``solid:oidcIssuer``. Documents of this server are read
from the store, as of now; others through the guarded way out, and kept for some minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.authn.claims import same_issuer
from podstead.core.bounded_cache import BoundedCache
from podstead.core.clock import Clock
from podstead.core.errors import BadRequest, OutboundError, OwnDocument, RequestRefused
from podstead.core.identifiers import ResourcePath, parse_path
from podstead.core.vocab import SOLID_OIDC_ISSUER
from podstead.jose.errors import InvalidJose
from podstead.rdf.graph import Graph
from podstead.rdf.terms import Iri
from podstead.storage.protocol import OpenBody, Snapshot
from podstead.storage.records import Metadata, Version

POSITIVE_S: Final = 300
NEGATIVE_S: Final = 30
FAILURE_S: Final = 30
MOST_FAILURES: Final = 4096
KEPT_CHARACTERS: Final = 4 * 1024 * 1024
"""Of the names of WebIDs and providers that are kept."""
MOST_TRIPLES: Final = 10_000
MOST_NAMED: Final = 64
"""Providers that one WebID may name."""
MOST_BYTES: Final = 1024 * 1024
"""Of a document of this server; foreign ones have the same limit (A-111)."""
_ATTEMPTS: Final = 4
_UNVERIFIABLE: Final = "The WebID's document could not be read"
_MISNAMED: Final = "The WebID leads to this server but does not begin with its base URL"


@dataclass(frozen=True, slots=True)
class ProfileDocument:
    """A WebID's document as fetched; ``final_url`` is the base of its relative references."""

    content: bytes
    media_type: str
    final_url: str


class ForeignProfiles(Protocol):
    """Reads WebID documents of other servers through the guarded way out."""

    async def fetch_profile(self, url: str) -> ProfileDocument:
        """Raises OutboundError."""


class ProfileSource(Protocol):
    """Where the documents of this server are kept; every resource store is one."""

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot: ...

    async def open_body(self, metadata: Metadata) -> OpenBody | None: ...


class RdfParser(Protocol):
    """Makes a graph of bytes; relative IRIs are resolved against ``base_iri``."""

    async def __call__(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        """Raises RequestRefused for what is no RDF, and OutboundError."""


@dataclass(frozen=True, slots=True)
class _Foreign:
    issuers: frozenset[str]
    read_ms: int

    def answers(self, issuer: str, now_ms: int) -> bool:
        """Whether what was read still says if the issuer is named; a no is asked again sooner,
        since people add providers and try at once (A-110)."""
        fresh_s = POSITIVE_S if _names(self.issuers, issuer) else NEGATIVE_S
        return now_ms < self.read_ms + fresh_s * 1000


class WebIdIssuers:
    """Which providers each WebID names."""

    def __init__(
        self,
        *,
        base_url: str,
        store: ProfileSource,
        foreign: ForeignProfiles,
        parse: RdfParser,
        clock: Clock,
    ) -> None:
        self._base_url = base_url
        self._store = store
        self._foreign = foreign
        self._parse = parse
        self._clock = clock
        self._local = BoundedCache[tuple[str, Version], frozenset[str]](KEPT_CHARACTERS)
        self._kept = BoundedCache[str, _Foreign](KEPT_CHARACTERS)
        self._failures = BoundedCache[str, int](MOST_FAILURES)

    def knows(self, web_id: str, issuer: str) -> bool:
        """Whether it is known without asking another server if the WebID names the issuer."""
        known = self._kept.get(web_id)
        return self._is_local(web_id) or (
            known is not None and known.answers(issuer, self._clock.now_ms())
        )

    async def trusts(self, web_id: str, issuer: str) -> bool:
        """Whether the WebID's document names the issuer. Raises InvalidJose if it cannot be had."""
        if self._is_local(web_id):
            issuers = await self._local_issuers(web_id)
        else:
            issuers = await self._foreign_issuers(web_id, issuer)
        return _names(issuers, issuer)

    def _is_local(self, web_id: str) -> bool:
        return web_id.startswith(f"{self._base_url}/")

    async def _local_issuers(self, web_id: str) -> frozenset[str]:
        url = web_id.partition("#")[0]
        try:
            path = parse_path(url[len(self._base_url) :].partition("?")[0].encode())
        except (BadRequest, UnicodeEncodeError) as error:
            raise InvalidJose(_UNVERIFIABLE) from error
        for _ in range(_ATTEMPTS):
            metadata = (await self._store.read_metadata([path]))[path]
            if metadata is None:
                return frozenset()
            known = self._local.get((web_id, metadata.version))
            if known is not None:
                return known
            if metadata.size_bytes > MOST_BYTES:
                raise InvalidJose(_UNVERIFIABLE)
            body = await self._store.open_body(metadata)
            if body is not None:
                issuers = await self._read_local(web_id, url, metadata, body)
                self._local.put(
                    (web_id, metadata.version), issuers, weight=_weight(web_id, issuers)
                )
                return issuers
        raise InvalidJose(_UNVERIFIABLE)

    async def _read_local(
        self, web_id: str, url: str, metadata: Metadata, body: OpenBody
    ) -> frozenset[str]:
        content = body.content
        if content is None:
            content = b"".join([chunk async for chunk in body.chunks()])
        return await self._issuers_in(content, metadata.content_type, url, web_id)

    async def _foreign_issuers(self, web_id: str, issuer: str) -> frozenset[str]:
        now_ms = self._clock.now_ms()
        known = self._kept.get(web_id)
        if known is not None and known.answers(issuer, now_ms):
            return known.issuers
        if now_ms < (self._failures.get(web_id) or 0):
            raise InvalidJose(_UNVERIFIABLE)
        try:
            document = await self._foreign.fetch_profile(web_id.partition("#")[0])
        except OwnDocument as error:
            raise InvalidJose(_MISNAMED) from error
        except OutboundError as error:
            raise InvalidJose(_UNVERIFIABLE) from error
        try:
            issuers = await self._issuers_in(
                document.content, document.media_type, document.final_url, web_id
            )
        except InvalidJose:
            # A document that is no good is not fetched again for a while; that none could
            # be had is remembered by who fetches.
            self._failures.put(web_id, self._clock.now_ms() + FAILURE_S * 1000)
            raise
        read = _Foreign(issuers, self._clock.now_ms())
        self._kept.put(web_id, read, weight=_weight(web_id, issuers))
        return issuers

    async def _issuers_in(
        self, content: bytes, content_type: str, base_iri: str, web_id: str
    ) -> frozenset[str]:
        try:
            graph = await self._parse(content, content_type, base_iri)
        except (RequestRefused, OutboundError) as error:
            raise InvalidJose(_UNVERIFIABLE) from error
        if len(graph) > MOST_TRIPLES:
            raise InvalidJose(_UNVERIFIABLE)
        named = graph.objects(Iri(web_id), Iri(SOLID_OIDC_ISSUER))
        issuers = frozenset(term.value for term in named if isinstance(term, Iri))
        if len(issuers) > MOST_NAMED:
            raise InvalidJose(_UNVERIFIABLE)
        return issuers


def _names(issuers: frozenset[str], issuer: str) -> bool:
    return any(same_issuer(issuer, named) for named in issuers)


def _weight(web_id: str, issuers: frozenset[str]) -> int:
    return len(web_id) + sum(map(len, issuers))
