"""The port through which other packages get documents of other servers.

:mod:`podstead.outbound.documents` decides what may be fetched for which purpose, and how long it is
used.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


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
