"""Which account does a request act as that a Nostr key signs? (A-127)

The link table decides. Where it does not know the key, the one account is meant whose profile
states it. Anybody can state a key in their profile, be it somebody else's; where several do, nobody
is meant. This is about requests to resources only: who signs in is for
:mod:`podstead.idp.nostr.sign_in` to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.idp.accounts import Accounts
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.records import Account, NostrLink
from podstead.storage.registry import Versioned


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The account of a key, and the link that says so; without one the profile does."""

    account: Versioned[Account]
    link: Versioned[NostrLink] | None = None


class KeyOwners:
    """Finds the accounts of keys."""

    def __init__(self, *, links: NostrLinks, stated: ProfileKeys, accounts: Accounts) -> None:
        self._links = links
        self._stated = stated
        self._accounts = accounts

    async def find(self, public_key: str) -> KeyOwner | None:
        """The one account that the key is of, be it disabled. Raises StorageError, Overloaded."""
        link = await self._links.find(public_key)
        if link is not None:
            account = await self._accounts.read(link.value.account_id)
            return None if account is None else KeyOwner(account, link)
        stating = await self._stated.accounts_of(public_key)
        # Whom the operator has shut out is not to stand in the way of others.
        candidates = [each for each in stating if not each.value.disabled] or stating
        return KeyOwner(candidates[0]) if len(candidates) == 1 else None
