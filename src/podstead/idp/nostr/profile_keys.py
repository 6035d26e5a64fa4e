"""Whose profile says that this Nostr key is theirs? Profiles of this server, as of now (A-127).

To find them, records of which profile states which key are kept. They change in the write that
changes the profile (:mod:`podstead.resources.write_hooks`) and go with the pod. But they only say
where to look: what counts is what the profile says when it is asked, so that a record which should
not be there lets nobody in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podstead.core.errors import BadRequest, RequestRefused, StorageError
from podstead.core.identifiers import ResourcePath, parse_path, storage_root
from podstead.idp.accounts import Accounts
from podstead.idp.audit import AuditEvent
from podstead.idp.names import name_key
from podstead.idp.nostr.allowed_keys import allowed_key, ending_allowed_key
from podstead.idp.records import (
    ALLOWED_KEYS,
    NOSTR_LINKS,
    PROFILE_KEYS,
    USERNAMES,
    Account,
    ProfileKey,
)
from podstead.idp.security_events import noting
from podstead.idp.source import profile_change
from podstead.nostr.npub import npub
from podstead.rdf.graph import Dataset
from podstead.rdf.nostr_keys import stated_keys
from podstead.rdf.parser import RdfParser
from podstead.storage.document_reader import DocumentReader
from podstead.storage.record_store import RecordStore
from podstead.storage.records import Metadata, Record
from podstead.storage.registry import Versioned

MOST_CLAIMS: Final = 100
"""How many profiles are looked at for one key: one is right, and two are too many already."""
CACHE_CHARACTERS: Final = 1024 * 1024
"""Of WebIDs and the keys in their profiles."""


class ProfileKeyRecords:
    """Which keys each profile states, as records that its writes take along."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    def applies_to(self, path: ResourcePath) -> bool:
        """Whether the document is a profile: WebIDs of this server are ``{base}/<pod>/#me``."""
        return storage_root(path) == path

    async def of(self, path: ResourcePath, content: Dataset) -> Sequence[Record]:
        """What to change when the profile is to say this. Raises StorageError."""
        pod = await self._records.store.read_pod(path.strip("/"))
        before = await self._records.of_owner(PROFILE_KEYS, path)
        keys = stated_keys(content.default, pod.owner) if pod is not None else frozenset[str]()
        named = {f"{key}{path}": ProfileKey(key) for key in sorted(keys)}
        known = {each.key for each in before}
        gone = sorted(known - named.keys())
        came = [key for key in named if key not in known]
        return (
            *(PROFILE_KEYS.drop(key) for key in gone),
            *(PROFILE_KEYS.put(key, named[key], owner=path) for key in came),
            *await self._of_account(
                path,
                came=[key.removesuffix(path) for key in came],
                gone=[key.removesuffix(path) for key in gone],
            ),
        )

    async def _of_account(
        self, path: ResourcePath, *, came: Sequence[str], gone: Sequence[str]
    ) -> Sequence[Record]:
        """What tells the owner of keys that the profile names now, or no more, and ends that the
        latter sign in. Of a key that is linked they are told when that is done or undone."""
        if not came and not gone:
            return ()
        name = name_key(path.strip("/"))
        account = await self._records.read(USERNAMES, name)
        if account is None:
            return ()
        owner = account.value.account_id
        records: list[Record] = []
        for public_key in gone:
            key = allowed_key(owner, public_key)
            allowed = await self._records.read(ALLOWED_KEYS, key)
            if allowed is not None:
                records += await ending_allowed_key(self._records, allowed, profile_change())
        kept = await self._records.of_owner(NOSTR_LINKS, owner)
        linked = {each.key for each in kept}
        for event, keys in (
            (AuditEvent.PROFILE_KEY_NAMED, came),
            (AuditEvent.PROFILE_KEY_UNNAMED, gone),
        ):
            told = [key for key in keys if key not in linked]
            if told:
                records += await noting(
                    self._records, owner, event, profile_change(), subject=_shown(told)
                )
        return records


def _shown(keys: Sequence[str]) -> str:
    """The keys of one change, in one event however many they are."""
    more = "" if len(keys) == 1 else f" and {len(keys) - 1} more"
    return npub(keys[0]) + more


class ProfileKeys:
    """Answers whose profile states a key."""

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
        """The accounts whose profile states the key (64 hexadecimal digits in lower case), also
        disabled ones. Raises StorageError, Overloaded."""
        listed = await PROFILE_KEYS.page(
            self._records.store, after=public_key, now_ms=self._records.now_ms(), limit=MOST_CLAIMS
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
        """Whether the account's profile states the key now. Raises StorageError, Overloaded."""
        return public_key in await self.keys_of(account)

    async def keys_of(self, account: Account) -> frozenset[str]:
        """The keys that the account's profile states now. Raises StorageError, Overloaded."""
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
