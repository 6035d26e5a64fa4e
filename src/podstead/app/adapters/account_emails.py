"""Finds the account with an e-mail address, for sharing with people of this server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podstead.idp.accounts import Accounts


@dataclass(frozen=True, slots=True)
class AccountEmails:
    """The e-mail addresses of accounts (:class:`podstead.resources.sharing.people.EmailOwners`)."""

    accounts: Accounts

    async def web_id_of(self, email: str) -> str | None:
        """The WebID of the account with this address. Raises StorageError."""
        found = await self.accounts.find(email) if "@" in email else None
        return None if found is None else found.value.web_id
