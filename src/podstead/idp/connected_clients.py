"""Lists the applications that may act for a person, and disconnects them (A-56, A-86).

One application may have several consents, one for each redirect URI, and a grant for each sign-in.
Disconnecting it ends all of them, and the tokens issued for them become invalid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from podstead.idp.records import CONSENTS, GRANTS, Consent, Grant, revoked
from podstead.storage.record_store import Changes, RecordStore, Versioned

_ID_CHARACTERS: Final = 32

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """An application that may act for a person. Times are Unix seconds."""

    connection_id: str
    client_id: str
    client_name: str | None
    hosts: Sequence[str]
    scopes: Sequence[str]
    since_s: int
    last_used_s: int | None
    """When it last got tokens; ``None`` if none of its tokens is valid any more."""
    redirect_uris: Sequence[str] = ()
    """The redirect URIs of the consents that have one; ``hosts`` are those of all consents."""


class ConnectedClients:
    """Lists the connected clients of accounts, and disconnects them."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def of_account(self, account_id: str) -> Sequence[ConnectedClient]:
        """The applications of an account, the most recently used first."""
        consents, grants = await self._read(account_id)
        found = []
        for client_id in _client_ids(consents, grants):
            given = [each.value for each in consents if each.value.client_id == client_id]
            going_on = [each.value for each in grants if each.value.client_id == client_id]
            found.append(_connected_client(client_id, given, going_on))
        return sorted(found, key=lambda each: each.last_used_s or each.since_s, reverse=True)

    async def end(self, account_id: str, connection_id: str) -> str | None:
        """Disconnect an application. Returns its client id, ``None`` if there is no such
        application."""

        async def compute() -> Changes[str | None]:
            consents, grants = await self._read(account_id)
            named = _client_ids(consents, grants)
            client_id = next((each for each in named if id_of(each) == connection_id), None)
            return _ending(
                client_id,
                [each for each in consents if each.value.client_id == client_id],
                [each for each in grants if each.value.client_id == client_id],
            )

        return await self._records.transact(compute)

    async def end_of_session(self, account_id: str, session_id: str) -> None:
        """End the grants that began in one session of a browser; the consents are kept."""

        async def compute() -> Changes[None]:
            _, grants = await self._read(account_id)
            return _ending(
                None, [], [each for each in grants if each.value.session_id == session_id]
            )

        await self._records.transact(compute)

    async def _read(
        self, account_id: str
    ) -> tuple[Sequence[Versioned[Consent]], Sequence[Versioned[Grant]]]:
        consents = await self._records.of_owner(CONSENTS, account_id)
        grants = await self._records.of_owner(GRANTS, account_id)
        return consents, [each for each in grants if not each.value.revoked]


def _ending(
    result: Result, consents: Sequence[Versioned[Consent]], grants: Sequence[Versioned[Grant]]
) -> Changes[Result]:
    """The changes that end consents and grants."""
    return Changes(
        result,
        [
            *(CONSENTS.drop(each.key) for each in consents),
            *(GRANTS.replace(each, revoked(each.value)) for each in grants),
        ],
        [*(each.unchanged for each in consents), *(each.unchanged for each in grants)],
    )


def id_of(client_id: str) -> str:
    """The id of a connected client in URLs; its own id may be a URL."""
    return hashlib.sha256(client_id.encode()).hexdigest()[:_ID_CHARACTERS]


def _client_ids(
    consents: Sequence[Versioned[Consent]], grants: Sequence[Versioned[Grant]]
) -> Sequence[str]:
    named = [each.value.client_id for each in consents]
    return tuple(dict.fromkeys(named + [each.value.client_id for each in grants]))


def _connected_client(
    client_id: str, given: Sequence[Consent], going_on: Sequence[Grant]
) -> ConnectedClient:
    names = [each.client_name for each in given] + [each.client_name for each in going_on]
    asked = [each.scopes for each in given] + [each.scopes for each in going_on]
    return ConnectedClient(
        connection_id=id_of(client_id),
        client_id=client_id,
        client_name=next(filter(None, names), None),
        hosts=tuple(dict.fromkeys(each.redirect_host for each in given)),
        scopes=tuple(dict.fromkeys(scope for scopes in asked for scope in scopes)),
        since_s=min([each.given_s for each in given] + [each.began_s for each in going_on]),
        last_used_s=max((each.last_used_s for each in going_on), default=None),
        redirect_uris=tuple(
            dict.fromkeys(each.redirect_uri for each in given if each.redirect_uri is not None)
        ),
    )
