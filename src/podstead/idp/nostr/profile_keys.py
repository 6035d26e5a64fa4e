"""Finds the profiles of this server that currently state a Nostr key (A-127).

To find them, the store has records of which profile states which key. They change in the write that
changes the profile (:mod:`podstead.resources.planning`) and are deleted with the pod. They only
say which profiles to read: the current content of the profile decides, so a wrong record gives
nobody access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podstead.core.errors import BadRequest, RequestRefused, StorageError
from podstead.core.identifiers import parse_path
from podstead.idp.accounts import Accounts
from podstead.idp.records import (
    PROFILE_KEYS,
    Account,
)
from podstead.rdf.graph import RdfParser
from podstead.rdf.nostr_keys import stated_keys
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
        listed = await PROFILE_KEYS.page(
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
