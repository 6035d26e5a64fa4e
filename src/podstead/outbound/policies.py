"""The policies for fetching, one for each purpose."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.outbound.foreign_documents import Purpose
from podstead.outbound.urls import Origin


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
