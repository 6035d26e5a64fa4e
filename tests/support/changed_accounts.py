"""What the operator does to accounts, done behind the server's back."""

from __future__ import annotations

import msgspec

from podstead.app.adapters.system import SystemRandomness
from podstead.idp.records import ACCOUNTS
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from tests.support.clock import FakeClock


async def change_account(store: Store, **changes: object) -> None:
    """Change what is kept of Alice's account."""
    for kept in await ACCOUNTS.page(store, now_ms=0):
        if kept.value.pod == "alice":
            records = [ACCOUNTS.replace(kept, msgspec.structs.replace(kept.value, **changes))]
            await RecordStore(store, FakeClock(), SystemRandomness()).commit(records)
