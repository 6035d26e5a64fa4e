"""What does the server ask of one kind of foreign document? Each kind is one frozen policy."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.outbound.foreign_documents import Purpose
from podstead.outbound.urls import Origin


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """How one kind of document is fetched (A-111, A-189). A fetch is shared by equal policies."""

    purpose: Purpose
    accept: str
    """The Accept header sent."""
    content_types: frozenset[str]
    """Media types taken, lower case and without parameters; any other is WrongType."""
    max_wire_bytes: int
    """Size limit of the body as sent, compressed or not."""
    max_content_bytes: int
    """Size limit of the body once decompressed."""
    connect_timeout_s: float = 3.0
    """For the name look-up, and again for connecting with TLS."""
    total_timeout_s: float = 5.0
    """For everything: waiting for a slot, all redirects, the whole body."""
    max_redirects: int = 0
    cross_origin_redirects: bool = False
    """Whether a redirect may leave the origin; none ever goes from https to http."""
    only_origins: frozenset[Origin] | None = None
    """If given, every hop must lie in one of these origins."""


@dataclass(frozen=True, slots=True)
class OutboundLimits:
    """Bounds over all fetches of this process (A-191)."""

    max_concurrent: int = 64
    """For one purpose."""
    max_concurrent_per_requester: int = 16
    """Of these; a stranger who names slow servers leaves slots to others."""
    max_concurrent_per_origin: int = 4
    """For one purpose, half of them for one requester."""
    failure_memory_s: float = 30.0
    """How long a failed fetch is answered from memory."""
    circuit_failures: int = 5
    """Failures of an origin in a row that stop further fetches from it for the same purpose."""
    circuit_pause_s: float = 60.0
    """How long they are stopped; then one fetch tries again."""
