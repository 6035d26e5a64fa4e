"""Ensures that every account keeps a factor to sign in with (A-124)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from podstead.core.errors import Conflict
from podstead.idp.codes import IdpCodes
from podstead.idp.records import NOSTR_LINKS, PASSKEYS, Account
from podstead.storage.record_store import RecordKind, RecordStore, Versioned
from podstead.storage.records import EntryAt

_ENOUGH: Final = 2
"""How many to read to find one besides the one that is removed."""


class LastFactor(Conflict):
    """It is the only factor of the account; nothing was removed."""

    code = IdpCodes.LAST_FACTOR


async def remaining_factor(
    records: RecordStore, account: Versioned[Account], *, without: EntryAt
) -> EntryAt:
    """A factor that remains when the factor ``without`` is removed.

    The removal has it as a precondition, so that it cannot be removed at the same time. Raises
    LastFactor.
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
