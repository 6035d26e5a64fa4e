"""Sends requests to other servers, through a guard that is set up on first use.

Commands that build parts of a server send no requests, and importing the HTTP client takes long, so
this module does not import it. A server imports it before it starts (``preload``).

A stranger can name any URL in a token, an access rule or a document. The guard refuses those of
this network, and each host that it refused is logged once an hour, because every request may name
it again (A-184).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from podstead.app.adapters.audit import LogAudit
from podstead.config import Settings
from podstead.core.caches import ExpiringCache
from podstead.core.clock import Clock
from podstead.idp.audit import Audit, AuditEvent
from podstead.outbound.errors import Refusal, Refused

if TYPE_CHECKING:
    from podstead.outbound.documents import RemoteDocuments
    from podstead.outbound.fetch import Fetcher
    from podstead.outbound.foreign_documents import FetchedDocument, Purpose
    from podstead.outbound.guard import Guard, SystemResolver
    from podstead.outbound.requests import Poster, PostReply
    from podstead.outbound.urls import Origin


NOTED_AGAIN_AFTER_MS: Final = 3_600_000
_MAX_PLACES: Final = 1024
_MAX_HOST_CHARACTERS: Final = 253

_BLOCKS: Final = frozenset({Refusal.HOST, Refusal.PORT, Refusal.ADDRESS})
"""The refusals because of where a URL leads; the others are about its form."""


class BlockedFetches:
    """Logs blocked requests."""

    def __init__(self, audit: Audit, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock
        self._noted: ExpiringCache[tuple[str, Refusal], int] = ExpiringCache(max_weight=_MAX_PLACES)

    @contextmanager
    def noting(self, url: str) -> Iterator[None]:
        """Log the request made within the context if it is refused because of where the URL, or a
        redirect from it, leads."""
        try:
            yield
        except Refused as refused:
            if refused.refusal in _BLOCKS:
                self._note(_host_of(url), refused.refusal)
            raise

    def _note(self, host: str, refusal: Refusal) -> None:
        now_ms = self._clock.now_ms()
        place = (host, refusal)
        if self._noted.get(place, now_ms) is not None:
            return
        self._noted.put(place, now_ms, expires_at_ms=now_ms + NOTED_AGAIN_AFTER_MS)
        self._audit.note(AuditEvent.FETCH_BLOCKED, host=host, rule=refusal.value)


def _host_of(url: str) -> str:
    """The host in the URL; empty if the URL has none."""
    with suppress(ValueError):
        return (urlsplit(url).hostname or "")[:_MAX_HOST_CHARACTERS]
    return ""


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

    async def ask(
        self, url: str, content: bytes, headers: Mapping[str, str], purpose: Purpose
    ) -> PostReply:
        """Send the content to a provider or a push service and return the response. Raises
        OutboundError."""
        with self._blocked.noting(url):
            return await self._outbound().poster.ask(url, content, headers, purpose)

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
