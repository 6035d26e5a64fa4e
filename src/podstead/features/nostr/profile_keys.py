"""The Nostr keys that profiles of this server state: whose they are, and which may sign in.

To find the profiles of a key, the store has records of which profile states which key
(:mod:`podstead.features.nostr.records`). They only say which profiles to read: the current content
of the profile decides, so a wrong record gives nobody access.

A key that a profile names authenticates requests, but it does not sign in, because anyone who can
write the profile could name a key of their own. The owner can allow individual keys on the account
page. Such a key signs in only while the profile names it, and only if the person types the name of
the account. Otherwise somebody could state another person's key in their own profile, and that
person would sign in to the wrong account. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, Conflict, NotFound, RequestRefused, StorageError
from podstead.core.identifiers import parse_path
from podstead.features.nostr import records as nostr_records
from podstead.features.nostr.events import InvalidEvent
from podstead.features.nostr.keys import npub, stated_keys
from podstead.features.nostr.links import MAX_PER_ACCOUNT, NostrLinks
from podstead.idp.accounts import Accounts
from podstead.idp.audit import Audit, RequestSource
from podstead.idp.records import Account
from podstead.idp.security_events import event_records
from podstead.idp.sign_in_methods import end_records
from podstead.rdf.graph import RdfParser
from podstead.storage.document_reader import DocumentReader
from podstead.storage.record_store import RecordStore, Versioned
from podstead.storage.records import Metadata

MAX_CLAIMS: Final = 100
"""How many profiles are read for one key. One is right, and two are already too many."""
CACHE_CHARACTERS: Final = 1024 * 1024
"""The size of the cache: the characters of WebIDs and of the keys in their profiles."""


class ProfileKeys:
    """Finds the accounts whose profiles state a key."""

    def __init__(
        self,
        *,
        base_url: str,
        records: RecordStore,
        accounts: Accounts,
        parse: RdfParser,
    ) -> None:
        self._base_url = base_url
        self._records = records
        self._accounts = accounts
        self._parse = parse
        self._profiles: DocumentReader[frozenset[str]] = DocumentReader(
            records.store,
            self._interpret,
            kind="profiles",
            weigh=lambda _, keys: sum(map(len, keys)),
            max_weight=CACHE_CHARACTERS,
        )

    async def accounts_of(self, public_key: str) -> Sequence[Versioned[Account]]:
        """The accounts whose profile states the key (64 hexadecimal digits in lower case),
        including disabled ones."""
        listed = await nostr_records.PROFILE_KEYS.page(
            self._records.store, after=public_key, now_ms=self._records.now_ms(), limit=MAX_CLAIMS
        )
        found = []
        for record in listed:
            if not record.key.startswith(public_key):
                break
            account = await self._accounts.find(record.key[len(public_key) :].strip("/"))
            if account is not None and await self.states(account.value, public_key):
                found.append(account)
        return found

    async def states(self, account: Account, public_key: str) -> bool:
        """Whether the account's profile states the key now."""
        return public_key in await self.keys_of(account)

    async def keys_of(self, account: Account) -> frozenset[str]:
        """The keys that the account's profile states now."""
        web_id = account.web_id
        url = web_id.partition("#")[0]
        if not url.startswith(f"{self._base_url}/"):
            return frozenset()
        try:
            path = parse_path(url[len(self._base_url) :].encode())
        except (BadRequest, UnicodeEncodeError) as error:
            raise StorageError(f"The account has no usable WebID: {web_id}") from error
        return await self._profiles.current(web_id, path) or frozenset()

    async def _interpret(self, web_id: str, metadata: Metadata, content: bytes) -> frozenset[str]:
        url = web_id.partition("#")[0]
        try:
            graph = await self._parse(content, metadata.content_type, url)
        except RequestRefused as error:
            raise StorageError(f"The stored profile {metadata.path} cannot be read") from error
        return stated_keys(graph, web_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedKeys:
    """Allows keys to sign in, and withdraws that permission."""

    records: RecordStore
    stated: ProfileKeys
    audit: Audit

    async def of_account(self, account_id: str) -> Sequence[Versioned[nostr_records.AllowedKey]]:
        """The keys that the owner of an account has allowed."""
        return await self.records.of_owner(nostr_records.ALLOWED_KEYS, account_id)

    async def find(
        self, account: Account, public_key: str
    ) -> Versioned[nostr_records.AllowedKey] | None:
        """The permission of a key to sign in to an account, while the profile names the key."""
        key = nostr_records.allowed_key(account.account_id, public_key)
        stored = await self.records.read(nostr_records.ALLOWED_KEYS, key)
        if stored is None or not await self.stated.states(account, public_key):
            return None
        return stored

    async def allow(
        self, account: Versioned[Account], public_key: str, source: RequestSource
    ) -> None:
        """Allow a key that the profile names to sign in. Raises NotFound for any other key,
        Conflict if there are too many."""
        if not await self.stated.states(account.value, public_key):
            raise NotFound(nostr_records.NostrCodes.NOT_IN_PROFILE)
        owner = account.value.account_id
        key, now_ms = nostr_records.allowed_key(owner, public_key), self.records.now_ms()
        present = await self.of_account(owner)
        if any(each.key == key for each in present):
            return
        if len(present) >= MAX_PER_ACCOUNT:
            raise Conflict(nostr_records.NostrCodes.TOO_MANY_ALLOWED, number=MAX_PER_ACCOUNT)
        allowed = nostr_records.AllowedKey(public_key, owner, created_s=now_ms // 1000)
        event = nostr_records.NostrEvents.PROFILE_KEY_ALLOWED
        await self.records.commit(
            [
                nostr_records.ALLOWED_KEYS.put(key, allowed, owner=owner),
                *await event_records(self.records, owner, event, source, subject=npub(public_key)),
            ],
            [account.unchanged, nostr_records.ALLOWED_KEYS.absent(key)],
        )
        self.audit.note(event, account_id=owner, key=public_key)

    async def end(self, account: Account, public_key: str, source: RequestSource) -> None:
        """Withdraw the permission of a key, and end the sessions and grants that began with it.
        Raises NotFound."""
        owner = account.account_id
        key = nostr_records.allowed_key(owner, public_key)
        stored = await self.records.read(nostr_records.ALLOWED_KEYS, key)
        if stored is None:
            raise NotFound(nostr_records.NostrCodes.KEY_NOT_ALLOWED)
        await self.records.commit(
            await nostr_records.ending_allowed_key(self.records, stored, source), [stored.unchanged]
        )
        # Sessions and grants that began with it during the removal:
        await self.records.commit(await end_records(self.records, owner, stored.entry))
        self.audit.note(
            nostr_records.NostrEvents.PROFILE_KEY_ENDED, account_id=owner, key=public_key
        )


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The account of a key, and its link; without a link the profile states the key."""

    account: Versioned[Account]
    link: Versioned[nostr_records.NostrLink] | None = None


class KeyOwners:
    """Finds the account that a request signed with a key acts as (A-127, A-149).

    The links decide. If a key has no link, it belongs to the one account whose profile states it.
    Anybody can state a key in their profile, even somebody else's; if several do, the key belongs
    to nobody. This applies to requests to resources only;
    :mod:`podstead.features.nostr.sign_in` decides who can sign in.
    """

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

    async def web_id_of(self, public_key: str) -> str | None:
        """The WebID of the one account that has the key. Raises InvalidEvent if the account is
        disabled."""
        owner = await self.find(public_key)
        if owner is None:
            return None
        account = owner.account.value
        if account.disabled:
            raise InvalidEvent("This account is disabled")
        return account.web_id

    async def is_linked(self, public_key: str) -> bool:
        """Whether the key is linked to an account."""
        owner = await self.find(public_key)
        return owner is not None and owner.link is not None
