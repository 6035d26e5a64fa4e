"""Where does a request come from that changes an account? Noted with the change for its owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RequestSource:
    """The client of a request, as seen through trusted proxies."""

    address: str
    """Its IP address; empty where no client made the change."""
    network: str
    """The part of the address that one customer has, by which limits count."""
    user_agent: str = ""
    """What the client says it is, or who made a change that no client made."""


OPERATOR: Final = RequestSource("", "", "the operator of this server")
PROFILE_CHANGE: Final = RequestSource("", "", "a change of the profile")
