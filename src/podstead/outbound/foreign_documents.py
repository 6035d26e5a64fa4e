"""Documents of other servers: the port through which other packages get them, and the policies."""

from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import Protocol

from podstead.core.caches import ExpiringCache
from podstead.outbound.errors import CircuitOpen
from podstead.outbound.urls import Origin


class Purpose(Enum):
    """The purposes of requests. Failures for one purpose do not affect the others."""

    GROUP = "group"
    """A document that an ACL names by ``acl:agentGroup`` (Web Access Control, section 4.2)."""
    WEB_ID = "webid"
    """A profile."""
    CONTEXT = "context"
    """A JSON-LD context, from an origin that the operator listed."""
    PROVIDER = "provider"
    """The configuration or the key set of an identity provider."""
    CLIENT = "client"
    """The document that a client identifier leads to (Solid-OIDC section 5.1)."""
    WEBHOOK = "webhook"
    """Notifications, which are sent and not fetched."""
    PUSH = "push"
    """Notices for browsers, which are sent to push services (RFC 8030)."""


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A complete document, decompressed."""

    content: bytes
    media_type: str
    """Lower case, without parameters."""
    final_url: str
    """Where it was found after redirects, without a fragment: the base of relative references."""
    max_age_s: int | None = None
    """How long it stays fresh by its Cache-Control; ``None`` if that does not say."""


class DocumentFetcher(Protocol):
    """Fetches foreign documents, guarded: no private addresses, limited in size and time."""

    async def fetch(self, url: str, purpose: Purpose) -> FetchedDocument:
        """Fetch the document at the URL; a fragment is ignored. Raises OutboundError, also if the
        document must not be fetched."""


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """How documents are fetched for one purpose (A-111, A-189). Equal policies share fetches."""

    purpose: Purpose
    accept: str
    """The Accept header."""
    content_types: frozenset[str]
    """The accepted media types, in lower case and without parameters."""
    max_wire_bytes: int
    """Limit for the body as sent, compressed or not."""
    max_content_bytes: int
    """Limit for the body after decompression."""
    connect_timeout_s: float = 3.0
    """For resolving the name, and again for connecting with TLS."""
    total_timeout_s: float = 5.0
    """For everything: waiting for a slot, all redirects, and the entire body."""
    max_redirects: int = 0
    cross_origin_redirects: bool = False
    """Whether redirects may lead to other origins; they never lead from https to http."""
    only_origins: frozenset[Origin] | None = None
    """If set, every hop must be in one of these origins."""


@dataclass(frozen=True, slots=True)
class OutboundLimits:
    """Limits for all fetches of this process together (A-191)."""

    max_concurrent: int = 64
    """For one purpose."""
    max_concurrent_per_requester: int = 16
    """Of these; a requester that names slow servers leaves slots for others."""
    max_concurrent_per_origin: int = 4
    """For one purpose, half of them for one requester."""
    failure_memory_s: float = 30.0
    """How long the failure of a fetch is raised again without another attempt."""
    circuit_failures: int = 5
    """The failures in a row after which nothing is fetched from an origin for the same purpose."""
    circuit_pause_s: float = 60.0
    """How long the pause lasts; then one fetch is allowed as a trial."""


# Pauses requests to origins that have failed too often.
#
# After several failures in a row, nothing is fetched from an origin for the same purpose during a
# pause. A dead port or a failing URL does not affect other origins, nor other purposes at this one.
# After the pause one fetch is allowed as a trial, and its start begins the next pause, so the
# others have to wait. If it succeeds, the circuit is closed. Pure apart from its own state: the
# caller passes the time with each call.

MAX_CIRCUITS = 4096
# Failures that are further apart than this are not "in a row"; much longer than any pause.
_FORGET_AFTER_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Circuit:
    """An origin and a purpose, which fail and recover together."""

    purpose: Purpose
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Failures:
    failures: int
    stopped_until_ms: int


class CircuitBreaker:
    """Counts the failures of each circuit."""

    def __init__(self, *, max_failures: int, pause_s: float) -> None:
        self._max_failures = max_failures
        self._pause_ms = int(pause_s * 1000)
        self._failures: ExpiringCache[Circuit, _Failures] = ExpiringCache(max_weight=MAX_CIRCUITS)

    def check(self, circuit: Circuit, now_ms: int) -> None:
        """Allow a fetch. Raises CircuitOpen."""
        known = self._failures.get(circuit, now_ms)
        if known is None or known.failures < self._max_failures:
            return
        if now_ms < known.stopped_until_ms:
            raise CircuitOpen(ceil((known.stopped_until_ms - now_ms) / 1000))
        self._remember(circuit, known.failures, now_ms)

    def failed(self, circuit: Circuit, now_ms: int) -> None:
        """Record that the origin did not respond properly."""
        known = self._failures.get(circuit, now_ms)
        self._remember(circuit, 1 if known is None else known.failures + 1, now_ms)

    def succeeded(self, circuit: Circuit) -> None:
        """Record that the origin responded."""
        self._failures.discard(circuit)

    def open_circuits(self, now_ms: int) -> int:
        """The number of circuits that are open at this moment."""
        return sum(
            each.failures >= self._max_failures and now_ms < each.stopped_until_ms
            for each in self._failures.values(now_ms)
        )

    def _remember(self, circuit: Circuit, failures: int, now_ms: int) -> None:
        self._failures.put(
            circuit,
            _Failures(failures, now_ms + self._pause_ms),
            expires_at_ms=now_ms + self._pause_ms + _FORGET_AFTER_MS,
        )
