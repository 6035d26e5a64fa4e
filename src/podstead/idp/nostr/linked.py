"""Finds the WebID that a request signed with a Nostr key acts as (A-149).

For requests to resources, a key that only a profile names counts like a linked one; it allows
nothing else.
"""

from __future__ import annotations

from podstead.idp.nostr.key_owners import KeyOwners
from podstead.nostr.errors import InvalidEvent


class LinkedWebIds:
    """Implements LinkedKeys of :mod:`podstead.features.nostr.requests`."""

    def __init__(self, owners: KeyOwners) -> None:
        self._owners = owners

    async def web_id_of(self, public_key: str) -> str | None:
        """The WebID of the one account that has the key. Raises InvalidEvent if the account is
        disabled."""
        owner = await self._owners.find(public_key)
        if owner is None:
            return None
        account = owner.account.value
        if account.disabled:
            raise InvalidEvent("This account is disabled")
        return account.web_id

    async def is_linked(self, public_key: str) -> bool:
        """Whether the key is linked to an account."""
        owner = await self._owners.find(public_key)
        return owner is not None and owner.link is not None
