"""The scopes and what they allow an application (Solid-OIDC 7, OpenID Connect Core 5.4).

The scope ``webid`` marks a Solid application: its tokens name the WebID and give access to
resources. Without it, a relying party of plain OpenID Connect learns who signed in and nothing
more. Solid clients older than that scope request ``openid`` alone; what distinguishes them from
relying parties is the key that they bind their tokens to. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from podstead.core.identity import IDENTITY_SCOPE

OPENID: Final = "openid"
WEBID: Final = "webid"
PROFILE: Final = "profile"
EMAIL: Final = "email"
OFFLINE: Final = "offline_access"
SCOPES: Final = (OPENID, WEBID, PROFILE, EMAIL, OFFLINE, IDENTITY_SCOPE)
"""The scopes of this provider; others are dropped (A-53)."""

_OF_PLAIN_RELYING_PARTIES: Final = frozenset({PROFILE, EMAIL})


def permissions(scopes: Iterable[str]) -> tuple[str, ...]:
    """The permissions that a person grants with these scopes: the most that an application can get.
    Whether its tokens will be bound to a key is not known yet, so ``openid`` alone is treated like
    ``webid``."""
    asked = set(scopes)
    if _OF_PLAIN_RELYING_PARTIES.isdisjoint(asked):
        asked.add(WEBID)
    return tuple(each for each in SCOPES if each in asked)


def speaks_for_web_id(scopes: Iterable[str], *, bound: bool) -> bool:
    """Whether tokens with these scopes name the WebID and give access to resources; ``bound`` means
    that they are bound to a DPoP key."""
    asked = set(scopes)
    return WEBID in asked or (bound and _OF_PLAIN_RELYING_PARTIES.isdisjoint(asked))
