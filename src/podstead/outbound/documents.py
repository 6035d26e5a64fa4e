"""Which foreign documents does the server read, and how long does it trust what it read?

Each kind has its policy, its limits and its cache. Nothing is parsed here: the callers get bytes,
the media type and the URL that is the base of relative references.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from podstead.core.clock import Clock
from podstead.outbound.cache import ExpiringCache
from podstead.outbound.fetch import Fetches
from podstead.outbound.policies import FetchPolicy, Purpose
from podstead.outbound.urls import Origin

_KIB = 1024
_MIB = 1024 * _KIB

RDF_POLICY = FetchPolicy(
    purpose=Purpose.GROUP,
    accept="text/turtle, application/ld+json;q=0.9, application/n-triples;q=0.8",
    content_types=frozenset({"text/turtle", "application/ld+json", "application/n-triples"}),
    max_wire_bytes=_MIB,
    max_content_bytes=_MIB,
    max_redirects=3,
    cross_origin_redirects=True,
)
"""Documents that an ACL names by ``acl:agentGroup`` (W-14)."""

PROFILE_POLICY = replace(
    RDF_POLICY,
    purpose=Purpose.WEB_ID,
    accept=f"{RDF_POLICY.accept}, text/html;q=0.3",
    content_types=RDF_POLICY.content_types | {"text/html"},
)
"""WebID documents, which may be pages with data islands (A-109, A-167, A-189)."""

CONTEXT_POLICY = FetchPolicy(
    purpose=Purpose.CONTEXT,
    accept="application/ld+json, application/json;q=0.9",
    content_types=frozenset({"application/ld+json", "application/json"}),
    max_wire_bytes=256 * _KIB,
    max_content_bytes=256 * _KIB,
    max_redirects=3,
    cross_origin_redirects=True,
)
"""JSON-LD contexts; every hop must lie in an origin that the operator listed (R-11)."""


PROVIDER_POLICY = FetchPolicy(
    purpose=Purpose.PROVIDER,
    accept="application/json",
    content_types=frozenset(
        {"application/json", "application/jwk-set+json", "application/ld+json"}
    ),
    max_wire_bytes=256 * _KIB,
    max_content_bytes=256 * _KIB,
    max_redirects=1,
)
"""Discovery documents and key sets of providers (A-111, A-189)."""

CLIENT_POLICY = FetchPolicy(
    purpose=Purpose.CLIENT,
    accept="application/ld+json, application/json;q=0.9, text/turtle;q=0.8",
    content_types=frozenset({"application/ld+json", "application/json", "text/turtle"}),
    max_wire_bytes=64 * _KIB,
    max_content_bytes=64 * _KIB,
    max_redirects=1,
)
"""Documents that a client's identifier leads to (A-51)."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """For how long a document is used again; its own max-age counts between the bounds."""

    floor_s: int
    """So that a document that forbids caching is not fetched per request."""
    default_s: int
    """For a document that says nothing."""
    ceiling_s: int

    def lifetime_s(self, max_age_s: int | None) -> int:
        """Seconds for which a document with this max-age is used again."""
        if max_age_s is None:
            return self.default_s
        return min(max(max_age_s, self.floor_s), self.ceiling_s)


GROUP_FRESHNESS = Freshness(floor_s=10, default_s=60, ceiling_s=300)
"""W-14, "cache of minutes": a member who was removed keeps access for the ceiling at most."""

CONTEXT_FRESHNESS = Freshness(floor_s=300, default_s=3600, ceiling_s=86_400)


@dataclass(frozen=True, slots=True)
class RemoteDocument:
    """A foreign document as its bytes."""

    content: bytes
    media_type: str
    """Lower case, without parameters."""
    final_url: str
    """The base of relative references; has no fragment."""


class RemoteDocuments:
    """Reads the kinds of foreign documents that the server knows, each through its own cache."""

    def __init__(
        self,
        fetcher: Fetches,
        clock: Clock,
        *,
        context_origins: frozenset[Origin] = frozenset(),
        cache_bytes: int = 16 * _MIB,
    ) -> None:
        """Each kind may keep ``cache_bytes`` of content in memory."""
        self._groups = _Kind(fetcher, clock, RDF_POLICY, GROUP_FRESHNESS, cache_bytes)
        self._contexts = _Kind(
            fetcher,
            clock,
            replace(CONTEXT_POLICY, only_origins=context_origins),
            CONTEXT_FRESHNESS,
            cache_bytes,
        )

    async def fetch_rdf_document(self, url: str) -> RemoteDocument:
        """The RDF document of an agent group. Raises FetchFailed.

        No failure may count as absence of the group's rules (W-14: nobody is a member then).
        """
        return await self._groups.read(url)

    async def fetch_jsonld_context(self, url: str) -> RemoteDocument:
        """A JSON-LD context from an origin that the operator listed. Raises FetchFailed."""
        return await self._contexts.read(url)


class _Kind:
    """One policy and its cache."""

    # What an entry costs beside its content: its key, object and place in the map, rounded up.
    _OVERHEAD_BYTES = 4 * _KIB

    def __init__(
        self,
        fetcher: Fetches,
        clock: Clock,
        policy: FetchPolicy,
        freshness: Freshness,
        cache_bytes: int,
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._policy = policy
        self._freshness = freshness
        self._cache: ExpiringCache[str, RemoteDocument] = ExpiringCache(max_weight=cache_bytes)

    async def read(self, url: str) -> RemoteDocument:
        key = url.partition("#")[0]
        cached = self._cache.get(key, self._clock.now_ms())
        if cached is not None:
            return cached
        fetched = await self._fetcher.fetch(url, self._policy)
        document = RemoteDocument(fetched.content, fetched.content_type, fetched.final_url)
        lifetime_s = self._freshness.lifetime_s(fetched.max_age_s)
        self._cache.put(
            key,
            document,
            expires_at_ms=self._clock.now_ms() + lifetime_s * 1000,
            weight=len(document.content) + self._OVERHEAD_BYTES,
        )
        return document
