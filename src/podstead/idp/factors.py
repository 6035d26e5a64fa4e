"""Can a person still sign in if this goes? An account keeps at least one way in (A-124)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from podstead.core.errors import Conflict
from podstead.idp.records import NOSTR_LINKS, PASSKEYS, Account
from podstead.storage.record_store import RecordStore
from podstead.storage.records import EntryAt
from podstead.storage.registry import Records, Versioned

_ENOUGH: Final = 2
"""So many of a kind tell whether there is one besides the one that goes."""


class LastFactor(Conflict):
    """It is the only way to sign in to the account; nothing was removed."""

    def __init__(self) -> None:
        super().__init__("This is the only way to sign in to the account: add another one first")


async def remaining_factor(
    records: RecordStore, account: Versioned[Account], *, without: EntryAt
) -> EntryAt:
    """What a person can sign in with when the factor ``without`` is removed.

    The removal relies on it, so that it does not go at the same time. Raises LastFactor,
    StorageError.
    """
    if account.value.password_hash is not None:
        return account.at
    owner = account.value.account_id
    kinds: Sequence[Records[Any]] = (PASSKEYS, NOSTR_LINKS)
    for kind in kinds:
        for each in await records.of_owner(kind, owner, limit=_ENOUGH):
            if each.at != without:
                return each.at
    raise LastFactor
