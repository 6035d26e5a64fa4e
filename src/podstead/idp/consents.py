"""Remembers a person's consent to an application at one of its redirect URIs (A-56).

A consent is for one account, one client and one redirect URI that the client has registered. A host
would not be enough, because many share one, as the pods of this server do. If an account has too
many consents, those not used for the longest time are removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from podstead.idp.records import CONSENTS, Client, Consent
from podstead.idp.redirects import registered_redirect
from podstead.storage.record_store import RecordStore, Versioned
from podstead.storage.records import Record

MAX_CONSENTS: Final = 200
"""How many consents an account has at most."""


class Consents:
    """Finds and replaces consents."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def find(
        self, account_id: str | None, client: Client, redirect_uri: str
    ) -> Consent | None:
        """The consent of an account for a client at a redirect URI."""
        if account_id is None:
            return None
        key = _key(account_id, client, redirect_uri)
        stored = await self._records.read(CONSENTS, key)
        return None if stored is None else stored.value

    async def changes(
        self, account_id: str, client: Client, redirect_uri: str, consent: Consent
    ) -> list[Record]:
        """The records that store the consent and remove those that exceed the limit."""
        key = _key(account_id, client, redirect_uri)
        stored = await self._records.of_owner(CONSENTS, account_id, limit=2 * MAX_CONSENTS)
        others = sorted((each for each in stored if each.key != key), key=_last_used_s)
        surplus = others[: max(0, len(others) + 1 - MAX_CONSENTS)]
        return [
            CONSENTS.put(key, consent, owner=account_id),
            *(CONSENTS.drop(each.key) for each in surplus),
        ]


def last_used_s(consents: Sequence[Consent]) -> int:
    """When the most recently used of them was used."""
    return max((max(each.last_used_s, each.given_s) for each in consents), default=0)


def _last_used_s(stored: Versioned[Consent]) -> int:
    return last_used_s([stored.value])


def _key(account_id: str, client: Client, redirect_uri: str) -> str:
    registered = registered_redirect(redirect_uri, client) or redirect_uri
    named = f"{account_id}\n{client.client_id}\n{registered}"
    return hashlib.sha256(named.encode()).hexdigest()
