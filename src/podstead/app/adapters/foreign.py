"""How does this deployment send requests to other servers? Through the guard, set up on first use.

Commands that build parts of a server send no requests, and importing the HTTP client takes long, so
this module does not import it. A server imports it before it starts (``preload``).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.app.adapters.audit import LogAudit
from podstead.app.adapters.blocked_fetches import BlockedFetches
from podstead.config import Settings
from podstead.core.clock import Clock

if TYPE_CHECKING:
    from podstead.outbound.documents import RemoteDocuments
    from podstead.outbound.fetch import Fetcher
    from podstead.outbound.foreign_documents import FetchedDocument, Purpose
    from podstead.outbound.guard import Guard, SystemResolver
    from podstead.outbound.requests import Poster, PostReply
    from podstead.outbound.urls import Origin


@dataclass(frozen=True, slots=True)
class _Outbound:
    """The parts that send requests to other servers."""

    documents: RemoteDocuments
    fetcher: Fetcher
    guard: Guard
    poster: Poster
    resolver: SystemResolver


class ForeignDocuments:
    """Reads foreign documents through ``podstead.outbound``, which is set up on first use."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._blocked = BlockedFetches(LogAudit(), clock)
        self._set_up: _Outbound | None = None

    async def fetch(self, url: str, purpose: Purpose) -> FetchedDocument:
        """Fetch the document at the URL. Raises OutboundError."""
        with self._blocked.noting(url):
            return await self._outbound().documents.fetch(url, purpose)

    async def origin_of(self, url: str) -> str:
        """The origin that the document is fetched from. Raises OutboundError."""
        with self._blocked.noting(url):
            return self._outbound().guard.admit(url).origin

    async def check_receiver(self, url: str) -> None:
        """Raises OutboundError, whose text is the reason, if the server must not send to the
        URL."""
        await self._outbound().poster.check(url)

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Send the content to the URL and return the status of the response. Raises
        OutboundError."""
        return await self._outbound().poster.post(url, content, headers)

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> PostReply:
        """Send the content to a provider and return the response. Raises OutboundError."""
        with self._blocked.noting(url):
            return await self._outbound().poster.ask(url, content, headers)

    def outcomes(self) -> Mapping[tuple[Purpose, str], int]:
        """How many requests had which outcome (``podstead.outbound.fetch``)."""
        if self._set_up is None:
            return {}
        fetched, posted = self._set_up.fetcher.outcomes, self._set_up.poster.outcomes
        return Counter(fetched.counts()) + Counter(posted.counts())

    def open_circuits(self) -> int:
        """The number of circuits that are open."""
        return 0 if self._set_up is None else self._set_up.fetcher.open_circuits()

    async def close(self) -> None:
        """Cancel the requests in progress."""
        if self._set_up is not None:
            await self._set_up.fetcher.close()
            self._set_up.resolver.close()

    def _outbound(self) -> _Outbound:
        if self._set_up is None:
            self._set_up = _set_up(self._settings, self._clock)
        return self._set_up


def _set_up(settings: Settings, clock: Clock) -> _Outbound:
    from podstead.outbound.documents import RemoteDocuments
    from podstead.outbound.fetch import Fetcher, trusted_certificates
    from podstead.outbound.foreign_documents import OutboundLimits
    from podstead.outbound.guard import Guard, SystemResolver
    from podstead.outbound.requests import Poster, PostLimits
    from podstead.outbound.urls import UrlRules
    from podstead.web.authority import is_loopback_url

    rules = UrlRules(
        own_origins=_own_origins(settings),
        private_origins=frozenset(settings.private_origins),
        loopback_allowed=is_loopback_url(settings.base_url),
    )
    resolver = SystemResolver()
    guard, tls = Guard(rules, resolver), trusted_certificates()
    fetcher = Fetcher(guard, clock, tls=tls, limits=OutboundLimits())
    origins = frozenset(settings.context_origins)
    return _Outbound(
        documents=RemoteDocuments(fetcher, clock, context_origins=origins),
        fetcher=fetcher,
        guard=guard,
        poster=Poster(guard, tls=tls, limits=PostLimits()),
        resolver=resolver,
    )


def _own_origins(settings: Settings) -> frozenset[Origin]:
    """Every origin of this server itself, to which it must not send requests (A-190): one for each
    Host that it accepts, and this machine at the port that it listens on."""
    from podstead.outbound.errors import Refused
    from podstead.outbound.urls import parse_origin
    from podstead.web.authority import hosts_of, served_hosts

    scheme, port = settings.base_url.partition(":")[0], settings.port
    hosts = served_hosts(settings.base_url, port=port, aliases=settings.host_aliases)
    hosts |= hosts_of(settings.issuer)
    origins = set()
    for host in {*hosts, f"localhost:{port}"}:
        with contextlib.suppress(Refused):  # port 0 occurs in no URL that the server fetches
            origins.add(parse_origin(f"{scheme}://{host}"))
    return frozenset(origins)
