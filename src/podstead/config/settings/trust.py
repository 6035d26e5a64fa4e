"""The settings for trusted proxies, hosts and origins."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import value_types
from podstead.config.table import Group, several
from podstead.config.value_types import Network
from podstead.outbound.urls import Origin


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """The settings of this part."""

    trusted_proxies: tuple[Network, ...] = several(
        value_types.NETWORK,
        Group.TRUST,
        "The address or network of a reverse proxy whose X-Forwarded-… headers the server trusts.",
        reason="Otherwise anybody could claim any address.",
        name="trusted-proxy",
    )
    host_aliases: tuple[str, ...] = several(
        value_types.AUTHORITY,
        Group.TRUST,
        "A further value of the Host header to accept. Requests with any value other than these "
        "and the host of the base URL get 421.",
        name="host-alias",
    )
    context_origins: tuple[Origin, ...] = several(
        value_types.ORIGIN,
        Group.TRUST,
        "An origin from which the server may fetch JSON-LD contexts, in addition to the contexts "
        "that it includes.",
        reason="The server fetches nothing merely because a document refers to it. If you list an "
        "origin, you trust it to define what documents mean, including documents stored earlier.",
        name="context-origin",
    )
    private_origins: tuple[Origin, ...] = several(
        value_types.ORIGIN,
        Group.TRUST,
        "An origin in a private network that the server may fetch documents from.",
        reason="By default, no request can make the server access its own network.",
        name="allow-private-origin",
    )
