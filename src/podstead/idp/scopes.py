"""What do the scopes of a request let an application do? (Solid-OIDC 7, OpenID Connect Core 5.4)

``webid`` is what makes an application one of Solid: its tokens name the WebID and give access to
resources. Without it a relying party of plain OpenID Connect learns who signed in, and nothing
more. Solid clients older than that scope ask for ``openid`` alone, and are told from relying
parties by the key that they bind their tokens to. Pure.
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
    """What a person agrees to with these scopes: the most that an application can get by them.
    Whether tokens will be bound to a key is not known yet, so ``openid`` alone is as much as with
    ``webid``."""
    asked = set(scopes)
    if _OF_PLAIN_RELYING_PARTIES.isdisjoint(asked):
        asked.add(WEBID)
    return tuple(each for each in SCOPES if each in asked)


def speaks_for_web_id(scopes: Iterable[str], *, bound: bool) -> bool:
    """Whether tokens of these scopes name the WebID and give access to resources; ``bound`` tells
    that they are bound to a DPoP key."""
    asked = set(scopes)
    return WEBID in asked or (bound and _OF_PLAIN_RELYING_PARTIES.isdisjoint(asked))
