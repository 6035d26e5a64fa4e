"""Finds the account that a request signed with a Nostr key acts as (A-127).

The links decide. If a key has no link, it belongs to the one account whose profile states it.
Anybody can state a key in their profile, even somebody else's; if several do, the key belongs to
nobody. This applies to requests to resources only; :mod:`podstead.idp.nostr.sign_in` decides who
can sign in.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.idp.accounts import Accounts
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.nostr.profile_keys import ProfileKeys
from podstead.idp.records import Account, NostrLink
from podstead.storage.record_store import Versioned


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The account of a key, and its link; without a link the profile states the key."""

    account: Versioned[Account]
    link: Versioned[NostrLink] | None = None


class KeyOwners:
    """Finds the accounts of keys."""

    def __init__(self, *, links: NostrLinks, stated: ProfileKeys, accounts: Accounts) -> None:
        self._links = links
        self._stated = stated
        self._accounts = accounts

    async def find(self, public_key: str) -> KeyOwner | None:
        """The one account that the key belongs to, even if it is disabled."""
        link = await self._links.find(public_key)
        if link is not None:
            account = await self._accounts.read(link.value.account_id)
            return None if account is None else KeyOwner(account, link)
        stating = await self._stated.accounts_of(public_key)
        # A disabled account must not make the key ambiguous for others.
        candidates = [each for each in stating if not each.value.disabled] or stating
        return KeyOwner(candidates[0]) if len(candidates) == 1 else None
