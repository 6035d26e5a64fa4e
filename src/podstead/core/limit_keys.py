"""Chooses the key under which an agent's requests count against limits.

Anyone who runs a provider or generates keys can present any number of names, so only WebIDs of this
server have counters of their own.
"""

from __future__ import annotations

from podstead.core.identity import Identity
from podstead.core.requester import requester


def limit_key(agent: Identity | None, *, base_url: str) -> str:
    """The WebID if it belongs to this server, otherwise the client's network."""
    if agent is not None and agent.iri.startswith(f"{base_url}/"):
        return agent.iri
    return requester()
