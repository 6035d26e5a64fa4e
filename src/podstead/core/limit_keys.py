"""By what are the requests of an agent counted, where limits are each agent's own?

Whoever runs a provider elsewhere, or makes keys, can come with any number of names. Only the names
that this server has given are counted by themselves.
"""

from __future__ import annotations

from podstead.core.identity import Identity
from podstead.core.requester import requester


def limit_key(agent: Identity | None, *, base_url: str) -> str:
    """The WebID of a person of this server, else the network that the request came from."""
    if agent is not None and agent.iri.startswith(f"{base_url}/"):
        return agent.iri
    return requester()
