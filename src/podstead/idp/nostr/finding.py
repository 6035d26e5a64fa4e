"""Which account does somebody sign in to who holds this Nostr key? (A-127)

The link table decides. Where it does not know the key, the one account is meant whose profile
states it. Anybody can state a key in their profile, be it somebody else's; where several do, the
key's own DID document may tell them apart, if the operator has named somebody to ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from podstead.core.errors import Conflict
from podstead.idp.accounts import Accounts
from podstead.idp.nostr.links import NostrLinks
from podstead.idp.nostr.resolution import DidResolution
from podstead.idp.records import Account, NostrLink
from podstead.storage.registry import Kept


class StatedKeys(Protocol):
    """Knows what the profiles of accounts say about keys."""

    async def accounts_of(self, public_key: str) -> Sequence[Kept[Account]]:
        """The accounts whose profile states the key. Raises StorageError, Overloaded."""

    async def states(self, account: Account, public_key: str) -> bool:
        """Whether the profile of the account states the key. Raises StorageError, Overloaded."""


class KeyAmbiguous(Conflict):
    """Several accounts could be meant."""

    known_text = "Key ambiguous"

    def __init__(self) -> None:
        super().__init__(
            "Several profiles here name this key: sign in in another way, and link the key to your "
            "account"
        )


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The account of a key, and the link that says so; without one the profile does."""

    account: Kept[Account]
    link: Kept[NostrLink] | None = None


class KeyOwners:
    """Finds the accounts of keys."""

    def __init__(
        self,
        *,
        links: NostrLinks,
        stated: StatedKeys,
        accounts: Accounts,
        resolution: DidResolution | None = None,
    ) -> None:
        """``resolution`` is ``None`` where nobody else is to be asked."""
        self._links = links
        self._stated = stated
        self._accounts = accounts
        self._resolution = resolution

    async def find(self, public_key: str) -> KeyOwner | None:
        """The one account that the key is of, be it disabled. Raises KeyAmbiguous, StorageError,
        Overloaded."""
        link = await self._links.find(public_key)
        if link is not None:
            account = await self._accounts.read(link.value.account_id)
            return None if account is None else KeyOwner(account, link)
        stating = await self._stated.accounts_of(public_key)
        # Whom the operator has shut out is not to stand in the way of others.
        candidates = [each for each in stating if not each.value.disabled] or stating
        if len(candidates) > 1:
            candidates = await self._known_as(public_key, candidates)
            if len(candidates) != 1:
                raise KeyAmbiguous
        return KeyOwner(candidates[0]) if candidates else None

    async def _known_as(
        self, public_key: str, candidates: Sequence[Kept[Account]]
    ) -> Sequence[Kept[Account]]:
        """Those of the candidates that the key's DID document names."""
        if self._resolution is None:
            return candidates
        web_ids = await self._resolution.web_ids_of(public_key)
        return [each for each in candidates if each.value.web_id in web_ids]
