"""Checks whether a WebID trusts a provider to issue its tokens (Solid-OIDC section 6.1, A-109).

Anybody can run a provider that issues tokens for any WebID. A token is valid only if the document
of the WebID names the provider with ``solid:oidcIssuer``. Documents of this server are read as they
are now; foreign documents are fetched and used for some minutes. Fetching is counted for the client
address that a caller passes; ``None`` counts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.authn.claims import same_issuer
from podstead.authn.lookups import OWN_LIMITS, STALE_S, Lookup, Lookups
from podstead.authn.web_id_documents import ProfileSources, UnusableDocument, WebIdDocuments
from podstead.core.caches import BoundedCache
from podstead.core.vocab import SOLID_OIDC_ISSUER
from podstead.jose.tokens import InvalidJose
from podstead.rdf.graph import Graph, Iri

POSITIVE_S: Final = 300
NEGATIVE_S: Final = 30
CACHE_CHARACTERS: Final = 4 * 1024 * 1024
"""The total size of the WebIDs and providers in the cache."""
MAX_NAMED_PROVIDERS: Final = 64
"""Providers that one WebID may name."""


@dataclass(frozen=True, slots=True)
class _Foreign:
    issuers: frozenset[str]
    read_ms: int

    def is_fresh_for(self, issuer: str, now_ms: int) -> bool:
        """Whether this may still be used for the issuer. An absent issuer is remembered for a
        shorter time, because people add a provider and try again at once (A-110)."""
        fresh_s = POSITIVE_S if _names(self.issuers, issuer) else NEGATIVE_S
        return now_ms < self.read_ms + fresh_s * 1000


class WebIdIssuers:
    """Knows which providers each WebID names."""

    def __init__(self, sources: ProfileSources, lookups: Lookups) -> None:
        self._lookups = lookups
        self._clock = sources.clock
        self._documents = WebIdDocuments(sources, extract=_issuers_of, weigh=_weight)
        self._cache = BoundedCache[str, _Foreign](CACHE_CHARACTERS)

    async def is_named_here(self, web_id: str, issuer: str) -> bool:
        """Whether the WebID's document is on this server and names the issuer."""
        try:
            return self._documents.is_local(web_id) and await self.trusts(web_id, issuer, None)
        except InvalidJose:
            return False

    async def trusts(self, web_id: str, issuer: str, client_address: str | None) -> bool:
        """Whether the WebID's document names the issuer. Raises InvalidJose if it is unusable, and
        RemoteUnavailable if it cannot be fetched at present."""
        try:
            if self._documents.is_local(web_id):
                issuers = await self._documents.stored(web_id) or frozenset()
            else:
                issuers = await self._foreign_issuers(web_id, issuer, client_address)
        except UnusableDocument as error:
            raise InvalidJose(str(error)) from error
        return _names(issuers, issuer)

    async def named_by(self, web_id: str, client_address: str | None) -> frozenset[str]:
        """The providers that the WebID's document names. Raises as :meth:`trusts` does."""
        try:
            if self._documents.is_local(web_id):
                return await self._documents.stored(web_id) or frozenset()
            return await self._foreign_issuers(web_id, "", client_address)
        except UnusableDocument as error:
            raise InvalidJose(str(error)) from error

    async def _foreign_issuers(
        self, web_id: str, issuer: str, client_address: str | None
    ) -> frozenset[str]:
        known = self._cache.get(web_id)
        if known is not None and known.is_fresh_for(issuer, self._clock.now_ms()):
            return known.issuers
        try:
            async with self._lookups.of(Lookup.WEB_ID, web_id, client_address):
                issuers = await self._documents.fetched(web_id)
        except OWN_LIMITS:
            stale_from_ms = self._clock.now_ms() - (POSITIVE_S + STALE_S) * 1000
            if known is None or not _names(known.issuers, issuer) or known.read_ms < stale_from_ms:
                raise
            return known.issuers
        read = _Foreign(issuers, self._clock.now_ms())
        self._cache.put(web_id, read, weight=len(web_id) + _weight(issuers))
        return issuers


def _issuers_of(graph: Graph, web_id: str) -> frozenset[str]:
    named = graph.objects(Iri(web_id), Iri(SOLID_OIDC_ISSUER))
    issuers = frozenset(term.value for term in named if isinstance(term, Iri))
    if len(issuers) > MAX_NAMED_PROVIDERS:
        raise UnusableDocument
    return issuers


def _names(issuers: frozenset[str], issuer: str) -> bool:
    return any(same_issuer(issuer, named) for named in issuers)


def _weight(issuers: frozenset[str]) -> int:
    return sum(map(len, issuers))
