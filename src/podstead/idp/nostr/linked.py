"""Which WebID does a request act as that a Nostr key signs? (A-149)

The link table decides; where it does not know the key, what profiles of this server say does.
Nobody else is asked: that would tell them who reads what (D-7).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podstead.core.errors import NotAuthenticated
from podstead.idp.accounts import Accounts
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.records import Account
from podstead.idp.registry import Kept


class StatedKeys(Protocol):
    """Knows what the profiles of accounts say about keys."""

    async def accounts_of(self, public_key: str) -> Sequence[Kept[Account]]:
        """The accounts whose profile states the key. Raises StorageError, Overloaded."""

    async def states(self, account: Account, public_key: str) -> bool:
        """Whether the profile of the account states the key. Raises StorageError, Overloaded."""


class LinkedWebIds:
    """Implements LinkedKeys of :mod:`podstead.authn.signed_requests`."""

    def __init__(self, *, links: NostrLinks, stated: StatedKeys, accounts: Accounts) -> None:
        self._links = links
        self._stated = stated
        self._accounts = accounts

    async def web_id_of(self, public_key: str) -> str | None:
        """The WebID of the one account that has the key. Raises NotAuthenticated if the account is
        disabled, StorageError, Overloaded."""
        account = await self._account_of(public_key)
        if account is None:
            return None
        if account.disabled:
            raise NotAuthenticated("This account is disabled", invalid=True, scheme="Nostr")
        return account.web_id

    async def _account_of(self, public_key: str) -> Account | None:
        link = await self._links.find(public_key)
        if link is None:
            found = await self._stated.accounts_of(public_key)
            return found[0].value if len(found) == 1 else None
        kept = await self._accounts.read(link.value.account_id)
        return None if kept is None else kept.value
