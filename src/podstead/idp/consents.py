"""To what has a person agreed before, for which application at which address? (A-56)

A consent belongs to one account, one client and one redirect URI that the client has registered: a
host is shared by many, as the pods of this server share one. An account keeps so many; those that
were not used for longest go first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from podstead.idp.records import CONSENTS, Client, Consent
from podstead.idp.redirects import registered_redirect
from podstead.storage.record_store import RecordStore
from podstead.storage.records import Record
from podstead.storage.registry import Versioned

MOST_CONSENTS: Final = 200
"""How many an account keeps."""


class Consents:
    """Finds and replaces the records of what people agreed to."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def find(
        self, account_id: str | None, client: Client, redirect_uri: str
    ) -> Consent | None:
        """What the account lets the client do at this address. Raises StorageError."""
        if account_id is None:
            return None
        key = _key(account_id, client, redirect_uri)
        kept = await self._records.read(CONSENTS, key)
        return None if kept is None else kept.value

    async def changes(
        self, account_id: str, client: Client, redirect_uri: str, consent: Consent
    ) -> list[Record]:
        """What keeps the consent from now on, and what has to go for it. Raises StorageError."""
        key = _key(account_id, client, redirect_uri)
        kept = await self._records.of_owner(CONSENTS, account_id, limit=2 * MOST_CONSENTS)
        others = sorted((each for each in kept if each.key != key), key=_last_used_s)
        surplus = others[: max(0, len(others) + 1 - MOST_CONSENTS)]
        return [
            CONSENTS.put(key, consent, owner=account_id),
            *(CONSENTS.drop(each.key) for each in surplus),
        ]


def last_used_s(consents: Sequence[Consent]) -> int:
    """When the latest of them was used."""
    return max((max(each.last_used_s, each.given_s) for each in consents), default=0)


def _last_used_s(kept: Versioned[Consent]) -> int:
    return last_used_s([kept.value])


def _key(account_id: str, client: Client, redirect_uri: str) -> str:
    registered = registered_redirect(redirect_uri, client) or redirect_uri
    named = f"{account_id}\n{client.client_id}\n{registered}"
    return hashlib.sha256(named.encode()).hexdigest()
