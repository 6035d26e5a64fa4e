"""Links that let a person in once, to replace a lost password or create the first operator.

A link contains a secret, of which only the hash is stored. It is used up in the write that changes
the password or creates the account. Opening the page does not use it up, since mail programs and
chats open links as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from podstead.core.errors import Conflict, NotFound
from podstead.idp.account_creation import Joined
from podstead.idp.codes import IdpCodes
from podstead.idp.records import ONE_TIME_LINKS, Account, OneTimeLink
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.storage.records import Record

SIGN_IN_LINK_S: Final = 3600
"""How long a link for signing in to an account is valid."""
FIRST_LINK_S: Final = 24 * 3600
"""How long the link for the first operator is valid; the next start makes a new one."""
_SECRET_BYTES: Final = 32
_FIRST: Final = "first-operator"
"""The owner of links that create the first operator."""


class LinkUsed(NotFound):
    """The link has been used, has expired or has been replaced by a newer one."""

    code = IdpCodes.LINK_USED


class LinkUsedMeanwhile(Conflict):
    """Another request has used the link."""

    code = IdpCodes.LINK_USED_MEANWHILE


@dataclass(frozen=True, slots=True)
class OneTimeLinks:
    """Creates and finds links."""

    records: RecordStore

    async def for_account(self, account: Account) -> tuple[str, Sequence[Record]]:
        """The secret of a new link for a person who cannot sign in, and the records that create it
        in place of earlier links of the account. Raises StorageError."""
        return await self._new(account.account_id, owner=account.account_id, valid_s=SIGN_IN_LINK_S)

    async def beside_others(self, account: Account) -> tuple[str, Sequence[Record]]:
        """As :meth:`for_account`, but earlier links remain valid: a stranger who asks for one
        cannot end those that the person has. A new password ends all of them."""
        secret, record = self._link(
            account.account_id, owner=account.account_id, valid_s=SIGN_IN_LINK_S
        )
        return secret, [record]

    async def for_first_operator(self) -> tuple[str, Sequence[Record]]:
        """The secret of a new link that creates an operator's account, and the records that create
        it in place of earlier ones. Raises StorageError."""
        return await self._new(None, owner=_FIRST, valid_s=FIRST_LINK_S)

    async def without_first(self) -> Sequence[Record]:
        """The records that end the link for the first operator: there is one now. Raises
        StorageError."""
        listed = await self.records.of_owner(ONE_TIME_LINKS, _FIRST)
        return [ONE_TIME_LINKS.drop(each.key) for each in listed]

    async def find(self, secret: str) -> Versioned[OneTimeLink]:
        """The link with that secret. Raises LinkUsed, StorageError."""
        stored = await self.records.read(ONE_TIME_LINKS, secret_key(secret))
        if stored is None:
            raise LinkUsed
        return stored

    def using_up(self, link: Versioned[OneTimeLink]) -> partial[Joined]:
        """What joins the write that creates an account with a link."""
        joined = Joined([ONE_TIME_LINKS.drop(link.key)], [link.unchanged], LinkUsedMeanwhile())
        return partial(_joined, joined)

    async def _new(
        self, account_id: str | None, *, owner: str, valid_s: int
    ) -> tuple[str, Sequence[Record]]:
        earlier = await self.records.of_owner(ONE_TIME_LINKS, owner)
        secret, record = self._link(account_id, owner=owner, valid_s=valid_s)
        return secret, [*(ONE_TIME_LINKS.drop(each.key) for each in earlier), record]

    def _link(self, account_id: str | None, *, owner: str, valid_s: int) -> tuple[str, Record]:
        secret = self.records.randomness.token_hex(_SECRET_BYTES)
        now_s = self.records.now_s()
        link = OneTimeLink(account_id=account_id, created_s=now_s)
        expires_ms = (now_s + valid_s) * 1000
        record = ONE_TIME_LINKS.put(secret_key(secret), link, owner=owner, expires_ms=expires_ms)
        return secret, record


def _joined(joined: Joined, _account: Account) -> Joined:
    return joined
