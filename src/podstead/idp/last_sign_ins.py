"""Records the last sign-in to each account, for the operator's list of accounts.

A session records it when it begins. A script that signs in for every request must not cause a write
for every request, so the time of its sign-ins is exact to an hour.
"""

from __future__ import annotations

from typing import Final

from podstead.idp.records import LAST_SIGN_INS, Account, LastSignIn
from podstead.storage.record_store import RecordStore, Versioned

_EXACT_TO_S: Final = 3600


class LastSignIns:
    """Records sign-ins without a session."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def note(self, account: Versioned[Account], *, factor: str) -> None:
        """Record a sign-in unless one was recorded within the last hour."""
        account_id = account.value.account_id
        stored = await self._records.read(LAST_SIGN_INS, account_id)
        now_s = self._records.now_s()
        if stored is not None and now_s - stored.value.at_s < _EXACT_TO_S:
            return
        noted = LAST_SIGN_INS.put(account_id, LastSignIn(now_s, factor), owner=account_id)
        unchanged = LAST_SIGN_INS.absent(account_id) if stored is None else stored.unchanged
        await self._records.try_commit([noted], [unchanged, account.unchanged])
