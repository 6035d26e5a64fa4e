"""Which account does a request act as that a Nostr key signs? (A-127)

The link table decides. Where it does not know the key, the one account is meant whose profile
states it. Anybody can state a key in their profile, be it somebody else's; where several do, nobody
is meant. This is about requests to resources only: who signs in is for
:mod:`podstead.idp.nostr.sign_in` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from podstead.idp.accounts import Accounts
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.records import Account, NostrLink
from podstead.storage.registry import Versioned


class StatedKeys(Protocol):
    """Knows what the profiles of accounts say about keys."""

    async def accounts_of(self, public_key: str) -> Sequence[Versioned[Account]]:
        """The accounts whose profile states the key. Raises StorageError, Overloaded."""

    async def keys_of(self, account: Account) -> frozenset[str]:
        """The keys that the profile of the account states. Raises StorageError, Overloaded."""

    async def states(self, account: Account, public_key: str) -> bool:
        """Whether the profile of the account states the key. Raises StorageError, Overloaded."""


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The account of a key, and the link that says so; without one the profile does."""

    account: Versioned[Account]
    link: Versioned[NostrLink] | None = None


class KeyOwners:
    """Finds the accounts of keys."""

    def __init__(self, *, links: NostrLinks, stated: StatedKeys, accounts: Accounts) -> None:
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
