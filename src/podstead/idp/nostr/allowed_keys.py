"""Lets the owner of an account allow keys in its profile to sign in without being linked.

A key that a profile names authenticates requests, but it does not sign in, because anyone who can
write the profile could name a key of their own. The owner can allow individual keys on the account
page. Such a key signs in only while the profile names it, and only if the person types the name of
the account. Otherwise somebody could state another person's key in their own profile, and that
person would sign in to the wrong account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from podstead.core.errors import Conflict, NotFound
from podstead.idp.audit import Audit, AuditEvent, RequestSource
from podstead.idp.codes import IdpCodes
from podstead.idp.records import ALLOWED_KEYS, Account, AllowedKey
from podstead.idp.security_events import event_records
from podstead.idp.sign_in_methods import end_records
from podstead.nostr.npub import npub
from podstead.storage.record_store import RecordStore, Versioned
from podstead.storage.records import Record

if TYPE_CHECKING:
    from podstead.idp.nostr.profile_keys import ProfileKeys  # not loaded without the provider

MAX_PER_ACCOUNT: Final = 50


class AllowedKeys:
    """Allows keys to sign in, and withdraws that permission."""

    def __init__(
        self,
        *,
        records: RecordStore,
        stated: ProfileKeys,
        audit: Audit,
    ) -> None:
        self._records = records
        self._stated = stated
        self._audit = audit

    async def of_account(self, account_id: str) -> Sequence[Versioned[AllowedKey]]:
        """The keys that the owner of an account has allowed."""
        return await self._records.of_owner(ALLOWED_KEYS, account_id)

    async def find(self, account: Account, public_key: str) -> Versioned[AllowedKey] | None:
        """The permission of a key to sign in to an account, while the profile names the key."""
        key = allowed_key(account.account_id, public_key)
        stored = await self._records.read(ALLOWED_KEYS, key)
        if stored is None or not await self._stated.states(account, public_key):
            return None
        return stored

    async def allow(
        self, account: Versioned[Account], public_key: str, source: RequestSource
    ) -> None:
        """Allow a key that the profile names to sign in. Raises NotFound for any other key,
        Conflict if there are too many."""
        if not await self._stated.states(account.value, public_key):
            raise NotFound(IdpCodes.OWN_KEY_NOT_IN_PROFILE)
        owner = account.value.account_id
        key, now_ms = allowed_key(owner, public_key), self._records.now_ms()
        present = await self.of_account(owner)
        if any(each.key == key for each in present):
            return
        if len(present) >= MAX_PER_ACCOUNT:
            raise Conflict(IdpCodes.TOO_MANY_ALLOWED_KEYS, number=MAX_PER_ACCOUNT)
        allowed = AllowedKey(public_key, owner, created_s=now_ms // 1000)
        event = AuditEvent.PROFILE_KEY_ALLOWED
        await self._records.commit(
            [
                ALLOWED_KEYS.put(key, allowed, owner=owner),
                *await event_records(self._records, owner, event, source, subject=npub(public_key)),
            ],
            [account.unchanged, ALLOWED_KEYS.absent(key)],
        )
        self._audit.note(event, account_id=owner, key=public_key)

    async def end(self, account: Account, public_key: str, source: RequestSource) -> None:
        """Withdraw the permission of a key, and end the sessions and grants that began with it.
        Raises NotFound."""
        owner = account.account_id
        key = allowed_key(owner, public_key)
        stored = await self._records.read(ALLOWED_KEYS, key)
        if stored is None:
            raise NotFound(IdpCodes.KEY_NOT_ALLOWED)
        await self._records.commit(
            await ending_allowed_key(self._records, stored, source), [stored.unchanged]
        )
        # Sessions and grants that began with it during the removal:
        await self._records.commit(await end_records(self._records, owner, stored.entry))
        self._audit.note(AuditEvent.PROFILE_KEY_ENDED, account_id=owner, key=public_key)


def allowed_key(account_id: str, public_key: str) -> str:
    """The key of the record of a permission."""
    return f"{account_id}.{public_key}"


async def ending_allowed_key(
    records: RecordStore, stored: Versioned[AllowedKey], source: RequestSource
) -> Sequence[Record]:
    """The records that withdraw a permission and end what began with it."""
    owner, subject = stored.value.account_id, npub(stored.value.public_key)
    event = AuditEvent.PROFILE_KEY_ENDED
    return [
        ALLOWED_KEYS.drop(stored.key),
        *await end_records(records, owner, stored.entry),
        *await event_records(records, owner, event, source, subject=subject),
    ]
