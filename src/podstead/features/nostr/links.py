"""Links Nostr keys to accounts (A-127, A-128), also to those that are created with one (A-131).

A key is linked to one account at most. Linking requires that the person is signed in and has proven
to hold the key, and only the owner of the account can unlink it. On request the profile also names
the key publicly, which does not affect the links.

Signing in with a key that no account has does not create an account; the person is offered to
create one. Meanwhile the server remembers for their browser that they hold the key, and the account
is created with the key. Pure.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from podstead.core.errors import Conflict, NotFound, PodsteadError, RequestRefused
from podstead.features.nostr import records as nostr_records
from podstead.features.nostr.keys import did_of, npub
from podstead.features.nostr.records import NostrCodes
from podstead.idp.account_creation import FurtherRecords, FurtherRecordsRefused
from podstead.idp.audit import Audit, RequestSource
from podstead.idp.records import Account
from podstead.idp.security_events import event_records, first_event_record
from podstead.idp.sign_in_methods import SignInMethod, end_records, remaining_factor
from podstead.storage import record_store
from podstead.storage.records import Precondition, Record

MAX_PER_ACCOUNT: Final = 50
PROVEN_S: Final = 30 * 60
"""How long a person who has proven to hold a key may take to create an account with it."""


class LinkedToOtherAccount(Conflict):
    """The key belongs to another account; nothing was changed."""

    known_text = "Key linked elsewhere"
    code = NostrCodes.LINKED_ELSEWHERE


class ProfileRefused(Conflict):
    """The profile could not be changed to name the key, or not to name it any more."""

    known_text = "Profile not changed"
    code = NostrCodes.PROFILE_NOT_CHANGED


class ProfileNames(Protocol):
    """Changes the profiles of accounts on behalf of their owners."""

    async def add_name(self, web_id: str, name: str) -> None:
        """Add to the profile that the WebID is the same as ``name``, unless it says so already.

        Raises RequestRefused for a profile that cannot be changed, ServerTrouble.
        """

    async def remove_name(self, web_id: str, name: str) -> None:
        """Remove that statement from the profile. Raises as :meth:`add_name`."""


@dataclass(kw_only=True)
class NostrLinks:
    """Links, finds, lists and unlinks keys."""

    records: record_store.RecordStore
    profiles: ProfileNames
    methods: Sequence[SignInMethod]
    """All by which accounts can sign in."""

    audit: Audit

    async def find(self, public_key: str) -> record_store.Versioned[nostr_records.NostrLink] | None:
        """The link of a key (64 hexadecimal digits in lower case)."""
        return await self.records.read(nostr_records.NOSTR_LINKS, public_key)

    async def of_account(
        self, account_id: str
    ) -> Sequence[record_store.Versioned[nostr_records.NostrLink]]:
        """The links of an account, oldest first."""
        stored = await self.records.of_owner(nostr_records.NOSTR_LINKS, account_id)
        return sorted(stored, key=lambda each: (each.value.created_s, each.key))

    async def link(
        self,
        account: record_store.Versioned[Account],
        public_key: str,
        *,
        source: RequestSource,
        publish: bool = True,
    ) -> nostr_records.NostrLink:
        """Link a key that its holder has proven to have, and publish it if ``publish``.

        A key that is already linked to the account stays linked, and is published now if it was
        not. Raises LinkedToOtherAccount, Conflict if there are too many, and ProfileRefused, after
        which the key is not linked.
        """
        before = await self.find(public_key)
        if before is None:
            stored = await self._add(account, public_key, source)
        elif before.value.account_id == account.value.account_id:
            stored = before
        else:
            raise LinkedToOtherAccount
        if not publish or stored.value.published:
            return stored.value
        try:
            return await self._publish(account.value, public_key)
        except PodsteadError as error:
            if before is None:
                await self._take_back(account, stored, source)
            if isinstance(error, RequestRefused):
                raise ProfileRefused from error
            raise

    async def unlink(
        self, account: record_store.Versioned[Account], public_key: str, *, source: RequestSource
    ) -> str:
        """Unlink a key of the account, and end the sessions and grants that began with it. Returns
        the sign-in method that was removed (:mod:`podstead.idp.sessions`).

        The profile is changed first, because a request signed with a key that the profile names is
        attributed to the account. If the profile cannot be changed, it still names the key. Raises
        NotFound and LastFactor.
        """
        stored = await self.find(public_key)
        if stored is None or stored.value.account_id != account.value.account_id:
            raise NotFound(nostr_records.NostrCodes.NO_SUCH_KEY)
        stays = await remaining_factor(self.records, self.methods, account, without=stored.entry)
        await self._unpublish(account.value, public_key)
        await self._drop(stored, [account.unchanged, stored.unchanged, stays], source)
        return stored.entry

    def use(
        self,
        stored: record_store.Versioned[nostr_records.NostrLink],
        account: record_store.Versioned[Account],
    ) -> record_store.Changes[None]:
        """The changes that record a sign-in to the account with the key."""
        used = msgspec.structs.replace(stored.value, last_used_s=self.records.now_s())
        return record_store.Changes(
            None,
            [nostr_records.NOSTR_LINKS.replace(stored, used)],
            [stored.unchanged, account.unchanged],
        )

    # --- parts --------------------------------------------------------------------------------

    async def _add(
        self, account: record_store.Versioned[Account], public_key: str, source: RequestSource
    ) -> record_store.Versioned[nostr_records.NostrLink]:
        owner = account.value.account_id
        if len(await self.of_account(owner)) >= MAX_PER_ACCOUNT:
            raise Conflict(nostr_records.NostrCodes.TOO_MANY_LINKED, number=MAX_PER_ACCOUNT)
        link = nostr_records.NostrLink(public_key, owner, created_s=self.records.now_s())
        await self.records.commit(
            [
                nostr_records.NOSTR_LINKS.put(public_key, link, owner=owner),
                *await self._noting(nostr_records.NostrEvents.KEY_LINKED, link, source),
            ],
            [account.unchanged, nostr_records.NOSTR_LINKS.absent(public_key)],
        )
        self._note(nostr_records.NostrEvents.KEY_LINKED, link)
        stored = await self.find(public_key)
        if stored is None:
            raise record_store.Contention
        return stored

    async def _take_back(
        self,
        account: record_store.Versioned[Account],
        stored: record_store.Versioned[nostr_records.NostrLink],
        source: RequestSource,
    ) -> None:
        """Undo the parts of linking a key that were done."""
        await self._unpublish(account.value, stored.key)
        await self._drop(stored, [stored.unchanged], source)

    async def _drop(
        self,
        stored: record_store.Versioned[nostr_records.NostrLink],
        preconditions: Sequence[Precondition],
        source: RequestSource,
    ) -> None:
        """Remove a link, and end the sessions and grants that began with it."""
        owner, method = stored.value.account_id, stored.entry
        removal = [
            nostr_records.NOSTR_LINKS.drop(stored.key),
            *await end_records(self.records, owner, method),
            *await self._noting(nostr_records.NostrEvents.KEY_UNLINKED, stored.value, source),
        ]
        await self.records.commit(removal, preconditions)
        # Sessions and grants that began with it during the removal:
        await self.records.commit(await end_records(self.records, owner, method))
        self._note(nostr_records.NostrEvents.KEY_UNLINKED, stored.value)

    async def _publish(self, account: Account, public_key: str) -> nostr_records.NostrLink:
        """The profile names the key before the link is marked as published."""
        await self.profiles.add_name(account.web_id, did_of(public_key))

        async def compute() -> record_store.Changes[nostr_records.NostrLink | None]:
            stored = await self.find(public_key)
            if stored is None or stored.value.account_id != account.account_id:
                return record_store.Changes(None)
            published = msgspec.structs.replace(stored.value, published=True)
            return record_store.Changes(
                published,
                [nostr_records.NOSTR_LINKS.replace(stored, published)],
                [stored.unchanged],
            )

        published = await self.records.transact(compute)
        if published is None:  # it was unlinked at the same time
            await self._unpublish(account, public_key)
            raise record_store.Contention
        return published

    async def _unpublish(self, account: Account, public_key: str) -> None:
        """Remove the key from the profile even if the link is not marked as published: the profile
        may name it all the same. A profile that its owner could not change either stays as it is.
        """
        with contextlib.suppress(RequestRefused):
            await self.profiles.remove_name(account.web_id, did_of(public_key))

    async def _noting(
        self, event: nostr_records.NostrEvents, link: nostr_records.NostrLink, source: RequestSource
    ) -> Sequence[Record]:
        return await event_records(
            self.records, link.account_id, event, source, subject=npub(link.public_key)
        )

    def _note(self, event: nostr_records.NostrEvents, link: nostr_records.NostrLink) -> None:
        self.audit.note(event, account_id=link.account_id, key=link.public_key)


class ProofGone(FurtherRecordsRefused):
    """The browser has not proven to hold the key, the proof has expired, or the key was linked
    meanwhile."""

    code = NostrCodes.PROOF_GONE


class ProvenKeys:
    """Stores proven keys by the secrets of browsers."""

    def __init__(self, *, records: record_store.RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    async def keep(self, public_key: str, *, browser: str) -> None:
        """Record that the browser has proven to hold a key."""
        now_ms = self._records.now_ms()
        record = nostr_records.PROVEN_KEYS.put(
            record_store.secret_key(browser),
            nostr_records.ProvenKey(public_key),
            expires_ms=now_ms + PROVEN_S * 1000,
        )
        await self._records.commit([record])

    async def of(self, browser: str) -> record_store.Versioned[nostr_records.ProvenKey] | None:
        """The key that a browser has most recently proven to hold."""
        key = record_store.secret_key(browser)
        return await self._records.read(nostr_records.PROVEN_KEYS, key)

    def joined(
        self,
        proven: record_store.Versioned[nostr_records.ProvenKey],
        source: RequestSource,
        account: Account,
    ) -> FurtherRecords:
        """The records that link the key in the write that creates the account."""
        public_key, owner = proven.value.public_key, account.account_id
        link = nostr_records.NostrLink(public_key, owner, created_s=account.created_s)
        return FurtherRecords(
            records=(
                nostr_records.NOSTR_LINKS.put(public_key, link, owner=owner),
                nostr_records.PROVEN_KEYS.drop(proven.key),
                first_event_record(
                    owner,
                    nostr_records.NostrEvents.KEY_LINKED,
                    source,
                    subject=npub(public_key),
                    now_ms=self._records.now_ms(),
                ),
            ),
            preconditions=(nostr_records.NOSTR_LINKS.absent(public_key), proven.unchanged),
            refusal=ProofGone(),
        )

    def linked(self, public_key: str, account: Account) -> None:
        """Note in the audit log that a key is linked to a new account."""
        self._audit.note(
            nostr_records.NostrEvents.KEY_LINKED, account_id=account.account_id, key=public_key
        )
