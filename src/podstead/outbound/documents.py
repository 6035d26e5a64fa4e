"""Fetches foreign documents under one policy for each purpose, and caches some of them.

Nothing is parsed here.
"""

from dataclasses import dataclass, replace
from typing import Final

from podstead.core.caches import ExpiringCache
from podstead.core.clock import Clock
from podstead.outbound.fetch import Fetcher
from podstead.outbound.foreign_documents import FetchedDocument, FetchPolicy, Purpose
from podstead.outbound.urls import Origin

_KIB = 1024
_MIB = 1024 * _KIB

GROUP_POLICY = FetchPolicy(
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
    GROUP_POLICY,
    purpose=Purpose.WEB_ID,
    accept=f"{GROUP_POLICY.accept}, text/html;q=0.3",
    content_types=GROUP_POLICY.content_types | {"text/html"},
)
"""WebID documents, which may be HTML pages with data islands (A-109, A-167, A-189)."""

CONTEXT_POLICY = FetchPolicy(
    purpose=Purpose.CONTEXT,
    accept="application/ld+json, application/json;q=0.9",
    content_types=frozenset({"application/ld+json", "application/json"}),
    max_wire_bytes=256 * _KIB,
    max_content_bytes=256 * _KIB,
    max_redirects=3,
    cross_origin_redirects=True,
)
"""JSON-LD contexts; every hop must be in an origin that the operator has listed (R-11)."""

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
"""The documents that client identifiers lead to (A-51)."""


POLICIES: Final = {
    policy.purpose: policy
    for policy in (GROUP_POLICY, PROFILE_POLICY, CONTEXT_POLICY, PROVIDER_POLICY, CLIENT_POLICY)
}


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long a document is used: for its own max-age, within these bounds."""

    floor_s: int
    """Even a document that forbids caching is not fetched for every request."""
    default_s: int
    """For a document without max-age."""
    ceiling_s: int

    def lifetime_s(self, max_age_s: int | None) -> int:
        """The number of seconds for which a document with this max-age is used."""
        if max_age_s is None:
            return self.default_s
        return min(max(max_age_s, self.floor_s), self.ceiling_s)


FRESHNESS: Final = {
    # The ceiling is how long a removed member can keep access (W-14).
    Purpose.GROUP: Freshness(floor_s=10, default_s=60, ceiling_s=300),
    Purpose.CONTEXT: Freshness(floor_s=300, default_s=3600, ceiling_s=86_400),
}
"""The documents that are cached here. For the others, the callers cache what they state."""

_OVERHEAD_BYTES: Final = 4 * _KIB
"""What a cached document occupies besides its content: key, object and entry, rounded up."""


class RemoteDocuments:
    """Fetches foreign documents, each with the policy of its purpose, and caches some of them."""

    def __init__(
        self,
        fetcher: Fetcher,
        clock: Clock,
        *,
        context_origins: frozenset[Origin] = frozenset(),
        cache_bytes: int = 16 * _MIB,
    ) -> None:
        """``cache_bytes`` bounds the content in the cache of each purpose."""
        self._fetcher = fetcher
        self._clock = clock
        contexts = replace(CONTEXT_POLICY, only_origins=context_origins)
        self._policies = {**POLICIES, Purpose.CONTEXT: contexts}
        self._caches = {
            purpose: ExpiringCache[str, FetchedDocument](max_weight=cache_bytes)
            for purpose in FRESHNESS
        }

    async def fetch(self, url: str, purpose: Purpose) -> FetchedDocument:
        """The document at the URL. Raises FetchFailed, and never returns an outdated document
        instead."""
        cache = self._caches.get(purpose)
        if cache is None:
            return await self._fetcher.fetch(url, self._policies[purpose])
        key = url.partition("#")[0]
        document = cache.get(key, self._clock.now_ms())
        if document is None:
            document = await self._fetcher.fetch(url, self._policies[purpose])
            lifetime_s = FRESHNESS[purpose].lifetime_s(document.max_age_s)
            cache.put(
                key,
                document,
                expires_at_ms=self._clock.now_ms() + lifetime_s * 1000,
                weight=len(document.content) + _OVERHEAD_BYTES,
            )
        return document
