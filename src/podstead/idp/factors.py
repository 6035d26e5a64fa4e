"""Can a person still sign in after a factor is removed? Every account keeps one (A-124)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from podstead.core.errors import Conflict
from podstead.idp.codes import IdpCodes
from podstead.idp.records import NOSTR_LINKS, PASSKEYS, Account
from podstead.storage.record_store import RecordStore
from podstead.storage.records import EntryAt
from podstead.storage.registry import RecordKind, Versioned

_ENOUGH: Final = 2
"""How many to read in order to find one other than the one that is removed."""


class LastFactor(Conflict):
    """It is the only factor of the account; nothing was removed."""

    code = IdpCodes.LAST_FACTOR


async def remaining_factor(
    records: RecordStore, account: Versioned[Account], *, without: EntryAt
) -> EntryAt:
    """A factor that remains when the factor ``without`` is removed.

    The removal has it as a precondition, so that it cannot be removed at the same time. Raises
    LastFactor, StorageError.
    """
    if account.value.password_hash is not None:
        return account.unchanged
    owner = account.value.account_id
    kinds: Sequence[RecordKind[Any]] = (PASSKEYS, NOSTR_LINKS)
    for kind in kinds:
        for each in await records.of_owner(kind, owner, limit=_ENOUGH):
            if each.unchanged != without:
                return each.unchanged
    raise LastFactor
