"""The source of a request that changes an account, recorded with the change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.request_context import requester, requester_address


@dataclass(frozen=True, slots=True)
class RequestSource:
    """The client of a request, as seen through trusted proxies."""

    address: str
    """Its IP address; empty where no client made the change."""
    network: str
    """The part of the address that one customer has, for which limits apply."""
    user_agent: str = ""
    """The ``User-Agent`` of the client."""
    language: str = ""
    """The language of the person's pages."""
    by: str = ""
    """How the change came about, if not by a request to the provider."""


OPERATOR: Final = RequestSource("", "", by="the operator of this server")


def profile_change() -> RequestSource:
    """The source of a change that results from a change of the profile, whichever request made
    that."""
    return RequestSource(requester_address() or "", requester(), by="a change of the profile")
