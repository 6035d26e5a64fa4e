"""How does this deployment reach other servers? The guarded way out, set up when first needed.

Commands that build parts of a server never ask another one anything, and the HTTP client takes long
to import, so it is not loaded with this module. A server loads it before it starts (``preload``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podstead.app.adapters.audit import LogAudit
from podstead.app.adapters.blocked_fetches import BlockedFetches
from podstead.authn.issuers import ProviderDocument
from podstead.authn.web_id_documents import ProfileDocument
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.core.errors import RemoteUnavailable

if TYPE_CHECKING:
    from podstead.idp.clients import ClientDocument
    from podstead.outbound.documents import RemoteDocument, RemoteDocuments
    from podstead.outbound.fetch import FetchedDocument, Fetcher
    from podstead.outbound.guard import Guard
    from podstead.outbound.policies import FetchPolicy
    from podstead.outbound.posting import Poster
    from podstead.outbound.resolver import SystemResolver
    from podstead.outbound.urls import Origin


class ForeignDocuments:
    """Reads foreign documents through ``podstead.outbound``, which is set up at the first one."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._blocked = BlockedFetches(LogAudit(), clock)
        self._documents: RemoteDocuments | None = None
        self._fetcher: Fetcher | None = None
        self._guard: Guard | None = None
        self._poster: Poster | None = None
        self._resolver: SystemResolver | None = None

    async def fetch_rdf_document(self, url: str) -> RemoteDocument:
        """A document that an ACL names by acl:agentGroup (W-14). Raises OutboundError."""
        documents = self._load()
        with self._blocked.noting(url):
            return await documents.fetch_rdf_document(url)

    async def fetch_context(self, url: str) -> bytes:
        """A JSON-LD context of an origin that the operator listed (R-11). Raises OutboundError."""
        documents = self._load()
        with self._blocked.noting(url):
            return (await documents.fetch_jsonld_context(url)).content

    async def fetch_profile(self, url: str) -> ProfileDocument:
        """The document of a WebID (A-109). Raises OutboundError."""
        from podstead.outbound.documents import PROFILE_POLICY

        fetched = await self._fetch(url, PROFILE_POLICY)
        return ProfileDocument(fetched.content, fetched.content_type, fetched.final_url)

    async def fetch_provider_document(self, url: str) -> ProviderDocument:
        """A discovery document or key set of a provider (A-108). Raises OutboundError."""
        from podstead.outbound.documents import PROVIDER_POLICY

        fetched = await self._fetch(url, PROVIDER_POLICY)
        return ProviderDocument(fetched.content, fetched.max_age_s)

    async def fetch_client_document(self, url: str) -> ClientDocument:
        """The document of a client's identifier (A-51). Raises OutboundError."""
        from podstead.idp.clients import ClientDocument
        from podstead.outbound.documents import CLIENT_POLICY

        fetched = await self._fetch(url, CLIENT_POLICY)
        return ClientDocument(fetched.content, fetched.content_type, fetched.final_url)

    async def client_document_origin(self, url: str) -> str:
        """The origin that such a document is fetched from. Raises OutboundError."""
        self._load()
        if self._guard is None:
            raise RemoteUnavailable("The server is stopping")
        with self._blocked.noting(url):
            return self._guard.admit(url).origin

    async def check_receiver(self, url: str) -> None:
        """Raises OutboundError for a URL to which this server sends nothing, as its text tells."""
        await self._poster_in_use().check(url)

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Send something; the status of the answer. Raises OutboundError."""
        return await self._poster_in_use().post(url, content, headers)

    def _poster_in_use(self) -> Poster:
        self._load()
        if self._poster is None:
            raise RemoteUnavailable("The server is stopping")
        return self._poster

    async def _fetch(self, url: str, policy: FetchPolicy) -> FetchedDocument:
        self._load()
        if self._fetcher is None:
            raise RemoteUnavailable("The server is stopping")
        with self._blocked.noting(url):
            return await self._fetcher.fetch(url, policy)

    async def close(self) -> None:
        """Stop what is under way."""
        if self._fetcher is not None:
            await self._fetcher.close()
        if self._resolver is not None:
            self._resolver.close()

    def _load(self) -> RemoteDocuments:
        if self._documents is None:
            self._documents = self._make()
        return self._documents

    def _make(self) -> RemoteDocuments:
        from podstead.outbound.documents import RemoteDocuments
        from podstead.outbound.fetch import Fetcher, trusted_certificates
        from podstead.outbound.guard import Guard
        from podstead.outbound.policies import OutboundLimits
        from podstead.outbound.posting import Poster, PostLimits
        from podstead.outbound.resolver import SystemResolver
        from podstead.outbound.urls import UrlRules
        from podstead.web.authority import is_loopback_url

        base_url = self._settings.base_url
        rules = UrlRules(
            own_origins=_own_origins(self._settings),
            private_origins=frozenset(self._settings.private_origins),
            loopback_allowed=is_loopback_url(base_url),
        )
        self._resolver = SystemResolver()
        guard, tls = Guard(rules, self._resolver), trusted_certificates()
        self._guard = guard
        self._fetcher = Fetcher(guard, self._clock, tls=tls, limits=OutboundLimits())
        self._poster = Poster(guard, tls=tls, limits=PostLimits())
        return RemoteDocuments(
            self._fetcher,
            self._clock,
            context_origins=frozenset(self._settings.context_origins),
        )


def _own_origins(settings: Settings) -> frozenset[Origin]:
    """Every origin by which this server could come to ask itself (A-190): whichever Host it answers
    to, and this machine at the port that it listens on."""
    from podstead.outbound.errors import Refused
    from podstead.outbound.urls import parse_origin
    from podstead.web.authority import hosts_of, served_hosts

    scheme, port = settings.base_url.partition(":")[0], settings.port
    hosts = served_hosts(settings.base_url, port=port, aliases=settings.host_aliases)
    hosts |= hosts_of(settings.issuer)
    origins = set()
    for host in {*hosts, f"localhost:{port}"}:
        with contextlib.suppress(Refused):  # then it is in no URL that is fetched
            origins.add(parse_origin(f"{scheme}://{host}"))
    return frozenset(origins)
