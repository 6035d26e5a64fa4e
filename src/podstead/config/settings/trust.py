"""Whom else does the server trust, and what may it fetch?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import kinds
from podstead.config.kinds import Network
from podstead.config.table import Group, several
from podstead.outbound.urls import Origin


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """The settings of this part."""

    trusted_proxies: tuple[Network, ...] = several(
        "trusted-proxy",
        kinds.NETWORK,
        Group.TRUST,
        "A reverse proxy whose X-Forwarded-… headers are believed.",
        reason="Anyone else could claim any address.",
    )
    host_aliases: tuple[str, ...] = several(
        "host-alias",
        kinds.AUTHORITY,
        Group.TRUST,
        "A further Host header to answer to; any other than the base URL's gets 421.",
    )
    context_origins: tuple[Origin, ...] = several(
        "context-origin",
        kinds.ORIGIN,
        Group.TRUST,
        (
            "An origin from which JSON-LD contexts may be fetched, besides those that come "
            "with the server."
        ),
        reason=(
            "Nothing is fetched because a document says so. Listing an origin trusts it to say "
            "what documents mean, those stored before included."
        ),
    )
    private_origins: tuple[Origin, ...] = several(
        "allow-private-origin",
        kinds.ORIGIN,
        Group.TRUST,
        "An origin in a private network that the server may fetch from.",
        reason="A request must not be able to make the server look into its own network.",
    )
